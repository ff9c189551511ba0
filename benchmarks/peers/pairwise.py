"""BoTorch's PairwiseGP on measured outcomes, with its BALD and EUBO acquisitions.

PairwiseGP learns a utility over the points that were compared. Here these points are outcomes, so
that it is a reward over outcomes like ours; policies come in through our forward model, whose
predicted outcomes are the candidates. Both acquisitions look at the pair (anchor, candidate): BALD
as it is, EUBO with the anchor in the place of its "previous winner" (an adaptation: EUBO was made
to choose both options of a pair, in order to find the best one).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]
from botorch.acquisition.preference import (  # type: ignore[import-not-found]
    AnalyticExpectedUtilityOfBestOption,
    PairwiseBayesianActiveLearningByDisagreement,
)
from botorch.exceptions.errors import ModelFittingError  # type: ignore[import-not-found]
from botorch.fit import fit_gpytorch_mll  # type: ignore[import-not-found]
from botorch.models.pairwise_gp import (  # type: ignore[import-not-found]
    PairwiseGP,
    PairwiseLaplaceMarginalLogLikelihood,
)
from scipy.stats import norm

from sfihilo.history import FloatArray, History

_ROWS = 4096


def winners_and_losers(history: History) -> tuple[FloatArray, list[tuple[int, int]]]:
    """Measured outcomes, and pairs of rows (preferred, other) of consecutive rounds."""
    outcomes = history.outcomes
    pairs: list[tuple[int, int]] = []
    for row, choice in enumerate(history.choices):
        if choice == "new":
            pairs.append((row, row - 1))
        elif choice == "previous":
            pairs.append((row - 1, row))
    return outcomes, pairs


class Utility:
    """A fitted PairwiseGP over outcomes."""

    def __init__(self, history: History, kernel: Any | None = None) -> None:
        outcomes, pairs = winners_and_losers(history)
        points, comparisons = torch.tensor(outcomes), torch.tensor(pairs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = PairwiseGP(points, comparisons, covar_module=kernel)
        self.failed = False

    @property
    def kernel(self) -> Any:
        """Its hyperparameters, to go on with."""
        return self.model.covar_module

    def fit(self) -> Utility:
        """Hyperparameters by the Laplace marginal likelihood, as BoTorch's tutorials do."""
        likelihood = PairwiseLaplaceMarginalLogLikelihood(self.model.likelihood, self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                fit_gpytorch_mll(likelihood)
            except ModelFittingError:
                self.failed = True  # BoTorch has put the first hyperparameters back
        self.model.eval()
        return self

    def evaluated(self) -> Utility:
        """Ready to predict with the hyperparameters it was given."""
        self.model.eval()
        return self

    def bald(self, anchor: FloatArray, candidates: FloatArray) -> FloatArray:
        """Mutual information of comparing each candidate with the anchor."""
        points = torch.tensor(candidates)
        pairs = torch.stack([torch.tensor(anchor).expand_as(points), points], dim=1)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = PairwiseBayesianActiveLearningByDisagreement(self.model)(pairs)
        return np.asarray(scores.numpy())

    def eubo(self, anchor: FloatArray, candidates: FloatArray) -> FloatArray:
        """Expected utility of the better of the candidate and the anchor."""
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rule = AnalyticExpectedUtilityOfBestOption(
                pref_model=self.model, previous_winner=torch.tensor(anchor)[None]
            )
            scores = rule(torch.tensor(candidates)[:, None])
        return np.asarray(scores.numpy())

    def mean_reward(self, outcomes: FloatArray) -> FloatArray:
        """Posterior mean utility, in the form that is quick for very many outcomes."""
        model = self.model
        with torch.no_grad():
            known = model.datapoints
            weights = torch.linalg.solve(model.covar, model.utility)
            found = [
                (self.kernel(torch.tensor(block), known).to_dense() @ weights).numpy()
                for block in np.array_split(outcomes.astype(float), 1 + len(outcomes) // _ROWS)
            ]
        return np.concatenate(found)

    def preference(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The preferred side of the mean utility as a probability (its variance is not needed)."""
        gap = self.mean_reward(first) - self.mean_reward(second)
        return np.asarray(norm.cdf(gap / np.sqrt(2.0)))

    def better(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The same: only the side that it is on is evaluated."""
        return self.preference(first, second)
