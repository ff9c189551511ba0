"""Hyperparameters of a preference process, chosen anew after comparisons.

Two choices: `PlainFit`, one length scale for all coordinates, by Laplace evidence times a weak
prior; and `PairwiseFit`, BoTorch's PairwiseGP with its own kernel (one length scale per
coordinate), priors and optimiser, started from the last hyperparameters.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from benchmarks.peers.advice.preference_process import Hyperparameters, PreferenceProcess
from sfihilo.history import FloatArray, IntArray

_LENGTHS = np.geomspace(0.15, 2.0, 10)
_VARIANCES = np.geomspace(0.5, 128.0, 9)
_USUAL_LENGTH, _LENGTH_SPREAD = 0.5, 0.6
_USUAL_VARIANCE, _VARIANCE_SPREAD = 8.0, 1.5


class Fit(Protocol):
    """Chooses hyperparameters given comparisons."""

    def __call__(self, points: FloatArray, pairs: IntArray) -> PreferenceProcess: ...


@dataclass
class PlainFit:
    """The best place of a grid, reached step by step from that of the last call."""

    place: tuple[int, int] = (5, 4)

    def __call__(self, points: FloatArray, pairs: IntArray) -> PreferenceProcess:
        found: dict[tuple[int, int], tuple[float, PreferenceProcess]] = {}
        while True:
            for place in self._around():
                if place not in found:
                    found[place] = self._evaluated(place, points, pairs)
            best = max(found, key=lambda place: found[place][0])
            if best == self.place:
                return found[best][1]
            self.place = best

    def _around(self) -> list[tuple[int, int]]:
        length, variance = self.place
        return [
            (i, j)
            for i in range(max(length - 1, 0), min(length + 2, len(_LENGTHS)))
            for j in range(max(variance - 1, 0), min(variance + 2, len(_VARIANCES)))
        ]

    @staticmethod
    def _evaluated(
        place: tuple[int, int], points: FloatArray, pairs: IntArray
    ) -> tuple[float, PreferenceProcess]:
        length, variance = float(_LENGTHS[place[0]]), float(_VARIANCES[place[1]])
        hyper = Hyperparameters(np.full(points.shape[1], length), variance)
        process = PreferenceProcess(points, pairs, hyper)
        prior = -0.5 * (np.log(length / _USUAL_LENGTH) / _LENGTH_SPREAD) ** 2
        prior -= 0.5 * (np.log(variance / _USUAL_VARIANCE) / _VARIANCE_SPREAD) ** 2
        return process.laplace.evidence + float(prior), process


@dataclass
class PairwiseFit:
    """BoTorch's PairwiseGP with its own kernel and priors."""

    iterations: int = 6  # per fit: warm starts make few enough
    often: int = 20  # a fit after every answer until then, and after every fourth from then on
    failed: int = 0
    _kernel: Any = field(default=None, repr=False)
    _dimension: int = 0

    def __call__(self, points: FloatArray, pairs: IntArray) -> PreferenceProcess:
        if self._kernel is not None and len(pairs) > self.often and len(pairs) % 4:
            return PreferenceProcess(points, pairs, self._hyper())
        self._fit(points, pairs)
        return PreferenceProcess(points, pairs, self._hyper())

    def _hyper(self) -> Hyperparameters:
        lengths = self._kernel.base_kernel.lengthscale.detach().numpy().ravel()
        whole = np.broadcast_to(lengths, (self._dimension,)).copy()
        return Hyperparameters(whole, float(self._kernel.outputscale.detach()))

    def _fit(self, points: FloatArray, pairs: IntArray) -> None:
        import torch  # type: ignore[import-not-found]
        from botorch.exceptions.errors import (  # type: ignore[import-not-found]
            ModelFittingError,
        )
        from botorch.fit import fit_gpytorch_mll  # type: ignore[import-not-found]
        from botorch.models.pairwise_gp import (  # type: ignore[import-not-found]
            PairwiseGP,
            PairwiseLaplaceMarginalLogLikelihood,
        )

        self._dimension = points.shape[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PairwiseGP(torch.tensor(points), torch.tensor(pairs), covar_module=self._kernel)
            likelihood = PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model)
            try:
                options = {"options": {"maxiter": self.iterations}}
                fit_gpytorch_mll(likelihood, optimizer_kwargs=options)
            except ModelFittingError:
                self.failed += 1  # BoTorch has put the first hyperparameters back
        self._kernel = model.covar_module
