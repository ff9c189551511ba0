import pandas as pd
import pytest

from tools.lottery_choices import lottery_choices


def test_lotteries_are_described_by_moments_and_complexity() -> None:
    table = pd.DataFrame(
        {
            "subject": ["p", "p"],
            "true_response": ["f", "j"],
            "test_part": ["cs", "sc"],
            "P_A1": [0.25, 0.5],
            "O_A1": [8.0, 3.0],
            "P_A2": [0.75, 0.5],
            "O_A2": [0.0, 3.0],
            "P_B1": [0.5, 0.5],
            "O_B1": [1.0, 0.0],
            "P_B2": [0.5, 0.5],
            "O_B2": [3.0, 2.0],
        }
    )
    choices = lottery_choices(table)
    assert list(choices["answer"]) == ["a", "b"]
    assert list(choices["a_mean"]) == [2, 3]
    assert list(choices["b_deviation"]) == [1, 1]
    # (0.25 * 6^3 - 0.75 * 2^3) / 12^1.5; a sure amount has no skewness.
    assert choices["a_skewness"].tolist() == pytest.approx([48 / 12**1.5, 0])
    assert list(choices["a_complex"]) == [1, 0]
    assert list(choices["b_complex"]) == [0, 1]


def test_an_unknown_key_is_refused() -> None:
    table = pd.DataFrame({"true_response": ["f", "x"]})
    with pytest.raises(ValueError, match="expected f or j, got 'x'"):
        lottery_choices(table)
