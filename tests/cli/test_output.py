"""What every command prints: tables, escaped text, numbers, errors."""

import pytest
import typer

from sfihilo.cli.output import (
    DAMAGED,
    FAILED,
    WRONG_INPUT,
    Output,
    errors,
    printable,
    readable,
    table_lines,
)
from sfihilo.cli.session.values import parse_choice, parse_number
from sfihilo.experiment import Outcome, Parameter
from sfihilo.experiment.output.digits import physical


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ValueError("x: expected 1, got 2"), WRONG_INPUT, "error: x: expected 1, got 2\n"),
        (FileNotFoundError(2, "No such file", "a.toml"), WRONG_INPUT, "a.toml: No such file"),
        (OSError(28, "No space left on device"), FAILED, "error: No space left on device\n"),
        (ValueError("a\nerror: forged \x1b[2J"), WRONG_INPUT, r"error: a\nerror: forged \x1b[2J"),
    ],
)
def test_errors_are_one_line_with_an_exit_code(
    error: Exception, code: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as left, errors():
        raise error
    assert left.value.exit_code == code
    shown = capsys.readouterr().err
    assert text in shown
    assert shown.count("\n") == 1


def test_exit_codes_differ() -> None:
    assert (FAILED, WRONG_INPUT, DAMAGED) == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[m/s]", "[m/s]"),
        ("[red]x[/red]", "[red]x[/red]"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\tb\r\n", r"a\tb\r\n"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\udcff", r"\udcff"),
        ("% stride", "% stride"),
        ("10 °C µm m·s⁻¹", "10 °C µm m·s⁻¹"),
        ("5\u202fNm", "5 Nm"),
    ],
)
def test_control_characters_are_shown_and_brackets_kept(text: str, shown: str) -> None:
    assert printable(text) == shown
    printable(text).encode()


def test_long_decimals_in_messages_are_shortened() -> None:
    message = "x: expected 0 to 10, got 41.266666666666666 from 0.30000000000000004 (sha 12.3a)"
    assert readable(message) == "x: expected 0 to 10, got 41.2667 from 0.3 (sha 12.3a)"


def test_units_in_brackets_stay_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table("Speed [m/s]", ["set", "unit"], [["speed", "[m/s]"], ["x", "[bold]"]])
    shown = capsys.readouterr().out
    assert "Speed [m/s]" in shown
    assert shown.count("[m/s]") == 2
    assert "[bold]" in shown


def test_wide_tables_become_several_within_80_columns() -> None:
    headings = ["trial", *(f"a_long_parameter_{i}" for i in range(12)), "why"]
    rows: list[list[object]] = [
        [row, *(row * 1234.5 for _ in range(12)), "a long reason " * 12] for row in range(1, 4)
    ]
    lines = table_lines(headings, rows)
    assert max(len(line) for line in lines) <= 80
    assert sum(line.startswith("trial") for line in lines) >= 2
    assert " ".join(lines).count("2469") == 12


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    lines = table_lines(["name", "n"], [["a", 5], ["long", 12.25], ["日本", None]])
    assert lines == ["", "name      n", "-----------", "a         5", "long  12.25", "日本", ""]


@pytest.mark.parametrize(
    ("value", "quantity", "shown"),
    [
        (41.266666666, Parameter(0, 60), "41.27"),
        (41.0, Parameter(0, 60), "41"),
        (4.1, Outcome(2, 8), "4.1"),
        (4.12345, Outcome(2, 8), "4.123"),
        (0.0001234, Parameter(1e-5, 1e2, log=True), "0.0001234"),
        (7.000000001, Parameter(0, 10, integer=True), "7"),
        (0.30000000000000004, Parameter(0, 1, step=0.1), "0.3"),
        (12345.6, Outcome(0, 50000), "12346"),
        (-0.0001, Parameter(-5, 5), "0"),
        (None, Outcome(2, 8), ""),
    ],
)
def test_physical_values_have_the_digits_that_their_range_asks_for(
    value: float | None, quantity: Parameter | Outcome, shown: str
) -> None:
    assert physical(value, quantity) == shown


@pytest.mark.parametrize(
    ("text", "value"),
    [("4,1", 4.1), ("-0,125", -0.125), ("12,5", 12.5), ("4.1", 4.1), ("1e3", 1e3)],
)
def test_decimal_commas_are_understood(text: str, value: float) -> None:
    assert parse_number(text, "x") == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,234", "could mean 1.234 or 1234"),
        ("12,345,678", "could mean 12345678"),
        ("1.234,5", "expected a number"),
        ("4 W", "expected a number such as 4.1"),
        ("4_1", "expected a number such as 4.1"),
    ],
)
def test_ambiguous_numbers_are_explained(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_number(text, "x")


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("n", "new"), ("N", "new"), ("New", "new"), ("p", "previous"), ("PREVIOUS", "previous"),
        ("s", "same"), ("c", None), ("none", None), ("cannot", None), ("can't say", None),
    ],
)  # fmt: skip
def test_answers_are_letters_or_words_in_either_case(text: str, choice: str | None) -> None:
    assert parse_choice(text) == choice


def test_unknown_answers_are_refused_with_the_letters() -> None:
    with pytest.raises(ValueError, match=r"expected n \(new\), p \(previous\), s \(same\) or c"):
        parse_choice("perhaps")
