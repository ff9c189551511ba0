"""The evaluation on people in an exoskeleton, on files of the same form."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy

from sfihilo.study.real.predictors import coin, logit
from tools.exoskeleton_gaits import main, right, walkers

GRID = np.array([10, 7])
LOW, HIGH = np.array([0.09, 0.85]), np.array([0.18, 1.15])


def written(folder: Path, name: str) -> None:
    """A person who likes long steps, with 29 comparisons and ten judged gaits."""
    rng = np.random.default_rng(0)
    gaits = np.column_stack([rng.permutation(30) % 10, rng.integers(0, 7, 30)])
    trials = np.empty((31, 4), dtype=object)
    trials[0] = ["TrialNumber", "X", "Y", "O"]
    trials[1] = ["1", np.empty(0), np.empty(0), 3]
    for number in range(1, 30):
        pair = gaits[number - 1 : number + 1]
        sign = np.sign(pair[0, 0] - pair[1, 0])
        trials[number + 1] = [str(number + 1), pair, np.array([1 + sign, 1 - sign]) / 2, 3]
    judged = LOW + (HIGH - LOW) * np.column_stack([np.arange(10) / 9, rng.uniform(size=10)])
    person = folder / name
    person.mkdir(parents=True)
    scipy.io.savemat(
        person / "ExperimentInfo.mat",
        {
            "tempExpInfo": trials,
            "validation_actions": judged,
            "val_labels": np.array([1, 1, 1, 2, 2, 2, 3, 3, 4, 4]),
        },
    )
    scipy.io.savemat(
        person / "active_GP_params.mat",
        {"grid_shape": GRID, "lower_bounds": LOW, "upper_bounds": HIGH},
    )


def test_gaits_are_scaled_to_their_bounds_and_ordered_by_their_grades(tmp_path: Path) -> None:
    written(tmp_path, "sub1")
    (walker,) = walkers(tmp_path)
    assert len(walker.compared) == 29
    assert (walker.compared.first[1:] == walker.compared.second[:-1]).all()
    assert walker.better.shape == (45 - 3 - 3 - 1 - 1, 2)  # equal grades are not compared
    assert (walker.better[:, 0] > walker.worse[:, 0]).all()
    for gaits in (walker.compared.first, walker.better, walker.worse):
        assert gaits.min() >= -1e-12
        assert gaits.max() <= 1 + 1e-12
    assert right(partial(logit, penalty=1.0), walker) == (37, 37)
    assert right(coin, walker) == (18.5, 37)


def test_table_has_a_row_per_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "sub1")
    main(tmp_path)
    assert "| `default` | 100% | 37 of 37, 100.0% | 37 to 37 |" in capsys.readouterr().out


def test_folder_without_people_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="expected folders sub1"):
        main(tmp_path)
