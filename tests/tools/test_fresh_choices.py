import numpy as np
import pandas as pd
import pytest

from tools.fresh_choices import prospect_choices, route_choices


def test_routes_keep_their_attributes_and_the_answer() -> None:
    table = pd.DataFrame({"ID": [7.0, 7.0], "choice": [2, 1]})
    for number in (1, 2):
        table = table.assign(
            **{f"{short}{number}": [10 * number, 20] for short in ("tt", "tc", "hw", "ch")}
        )
    choices = route_choices(table)
    assert list(choices["person"]) == [7, 7]
    assert list(choices["answer"]) == ["b", "a"]
    assert list(choices["a_time"]) == [10, 20]
    assert list(choices["b_changes"]) == [20, 20]


def test_prospects_with_fewer_than_four_amounts_are_described_by_those_they_have() -> None:
    missing = np.nan
    amounts = {"a": (100.0, 300.0, missing, missing), "b": (50.0, 60.0, 70.0, 999.0)}
    chances = {"a": (0.5, 0.5, missing, missing), "b": (0.25, 0.5, 0.25, 0.0)}
    table = pd.DataFrame({"IdSubject": [1], "Preference": [1]})
    for option in "ab":
        for place in range(4):
            table[f"x{place + 1}{option}"] = amounts[option][place]
            table[f"p{place + 1}{option}"] = chances[option][place]
    choice = prospect_choices(table).iloc[0]
    assert choice["a_mean"] == 200
    assert choice["a_deviation"] == 100
    assert choice["a_skewness"] == 0
    assert choice["a_least"] == 100
    assert choice["b_mean"] == 60
    assert choice["b_least"] == 50
    assert choice["answer"] == "a"


def test_an_unknown_answer_is_refused() -> None:
    table = pd.DataFrame({"ID": [1], "choice": [3]})
    for number in (1, 2):
        table = table.assign(**{f"{short}{number}": [1] for short in ("tt", "tc", "hw", "ch")})
    with pytest.raises(ValueError, match="expected 1 or 2, got"):
        route_choices(table)
