"""Real people in an exoskeleton: are gaits that they judge later ordered right?

    python -m tools.exoskeleton_gaits FOLDER

FOLDER is `Experiment/Results` of the public repository kli58/ROIAL (Li, K., Tucker, M., and others,
2021, "ROIAL: Region of interest active learning for characterizing exoskeleton gait preference
landscapes", ICRA), which is not kept here. Each of its three people walked 30 gaits and compared
each with the one before. Then they judged ten other gaits on a scale of four. A model learns from
the 29 comparisons, with the four parameters of the gait as outcomes, and orders every two of the
ten gaits that were judged differently.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy

from sfihilo.history import FloatArray
from sfihilo.study.people.choice_data import PersonChoices
from sfihilo.study.real.predictors import MODELS, WORDS, Model, learned

_SEEDS = 8


@dataclass(frozen=True, eq=False)
class Walker:
    """A person's comparisons, and pairs of gaits of which the first was judged better."""

    compared: PersonChoices
    better: FloatArray
    worse: FloatArray


def walkers(folder: Path) -> Iterator[Walker]:
    """The people of the experiment."""
    for path in sorted(folder.glob("sub*/ExperimentInfo.mat")):
        experiment = scipy.io.loadmat(path, squeeze_me=True)
        grid = scipy.io.loadmat(path.with_name("active_GP_params.mat"), squeeze_me=True)
        trials = experiment["tempExpInfo"][2:]  # a header, and a first gait without comparison
        gaits = np.array([trial[1] for trial in trials]) / (grid["grid_shape"].astype(float) - 1)
        answers = np.array([trial[2] for trial in trials], dtype=float)
        labels = np.sign(answers[:, 0] - answers[:, 1])
        low, high = grid["lower_bounds"], grid["upper_bounds"]
        judged = (experiment["validation_actions"] - low) / (high - low)
        grades = experiment["val_labels"].astype(int)
        ordered = [
            (first, second) if grades[first] > grades[second] else (second, first)
            for first, second in combinations(range(len(grades)), 2)
            if grades[first] != grades[second]
        ]
        better, worse = np.array(ordered).T
        compared = PersonChoices(path.parent.name, gaits[:, 0], gaits[:, 1], labels)
        yield Walker(compared, judged[better], judged[worse])


def right(model: Model, walker: Walker) -> tuple[float, int]:
    """How many pairs a model orders right, and of how many; what it cannot tell counts half."""
    preference = model(walker.compared, walker.better, walker.worse)
    return float(np.sum(preference > 0.5) + np.sum(preference == 0.5) / 2), len(preference)


def drawn(model: Model) -> list[Model]:
    """The model with each of some seeds, where it has one: the paper's features are random."""
    if isinstance(model, partial) and model.func is learned:
        return [partial(model, seed=seed) for seed in range(_SEEDS)]
    return [model]


def main(folder: Path) -> None:
    """Print a table with one row per model: means over seeds, and the range of the totals."""
    people = list(walkers(folder))
    if not people:
        sys.exit(f"{folder}: expected folders sub1, sub2, ... with ExperimentInfo.mat, got none")
    pairs = [len(each.better) for each in people]
    print(f"| model | {' | '.join(each.compared.person for each in people)} | all | range |")
    print("| --- |" + " --- |" * (len(people) + 2))
    for name, model in MODELS.items():
        counts = np.array(
            [[right(version, walker)[0] for walker in people] for version in drawn(model)]
        )
        each = " | ".join(f"{share:.0%}" for share in counts.mean(axis=0) / pairs)
        totals = counts.sum(axis=1)
        mean, low, high = totals.mean(), totals.min(), totals.max()
        share = f"{mean:g} of {sum(pairs)}, {mean / sum(pairs):.1%}"
        print(f"| {WORDS[name]} | {each} | {share} | {low:g} to {high:g} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
