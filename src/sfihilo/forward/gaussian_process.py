"""Outcomes as Gaussian processes with a prior that stays where it is, for rules that seek.

The forward belief (belief.py) centres and scales outcomes by those that were executed. A rule that
seeks a good setting executes much alike: centre and scale then follow the search, and the belief
becomes too certain of what is far from it. Here the prior is fixed, and each outcome has its own
hyperparameters, chosen by evidence from the first observations on.

Notation
--------
policies      tau_i           (t, d_policy)   trials in which the outcome was measured
length_scale  l               of one outcome
amplitude     a               standard deviation of the outcome over policies
noise         s               standard deviation of a measurement
weights       omega_i         (t,)            all one unless drift is expected (recency.py)
system        A = K + diag(s^2 / omega_i) = L L^T
explained     L^-1 k(tau)     (n, t)

    phi(tau)      = 1/2 + f(tau),  f ~ GP(0, k)
    k(tau, tau')  = a^2 (exp(-|tau - tau'|^2 / 2 l^2) + c)
    mean(tau)     = 1/2 + k(tau)^T A^-1 (phi - 1/2)
    cov(tau,tau') = k(tau, tau') - k(tau)^T A^-1 k(tau')

A function is drawn by Matheron's rule (Wilson et al. 2020, "Efficiently sampling functions from
Gaussian process posteriors"): a draw of the prior, g, corrected by what the data say about it,

    f~(tau) = g(tau) + k(tau)^T A^-1 (phi - 1/2 - g(T) - e),   e_i ~ N(0, s^2 / omega_i)
    g(tau)  = a (sqrt(2 / M) sum_m w_m cos(v_m^T tau / l + b_m) + sqrt(c) w_0),   w, v ~ N(0, I)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfihilo.forward.belief import same_trials
from sfihilo.forward.factor import add_to_diagonal, inverse_cholesky
from sfihilo.forward.kernel import rbf
from sfihilo.history import FloatArray, IntArray

_MIDDLE = 0.5
_CONSTANT = 0.3  # c: variance of the outcome's level, in units of a^2
_LENGTH_SCALES = np.array([0.3, 0.4, 0.5, 0.65, 0.85])
_AMPLITUDES = np.array([0.07, 0.1, 0.14, 0.2, 0.28])
_NOISE_FACTORS = np.array([1.0, 1.25, 1.6, 2.2])  # of the lab's measurement noise
_LEAST_NOISE = 0.01
_EVIDENCE_TRIALS = 100  # more of them hardly change the choice
_WAVES = 256  # M


class ProcessHyperparameters(NamedTuple):
    """l, a and s of one outcome."""

    length_scale: float
    amplitude: float
    noise: float


class ProcessBelief(NamedTuple):
    """The processes evaluated at n policies."""

    policies: FloatArray  # (n, d_policy)
    mean: FloatArray  # (n, d_outcome)
    variance: FloatArray  # (n, d_outcome), without measurement noise
    explained: tuple[FloatArray, ...]  # (n, t) of each outcome

    @staticmethod
    def joined(parts: Sequence[ProcessBelief]) -> ProcessBelief:
        """All policies of the parts, one part after the other."""
        return ProcessBelief(
            np.concatenate([part.policies for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.variance for part in parts]),
            tuple(
                np.concatenate(each)
                for each in zip(*(part.explained for part in parts), strict=True)
            ),
        )

    def rows(self, chosen: IntArray) -> ProcessBelief:
        return ProcessBelief(
            self.policies[chosen],
            self.mean[chosen],
            self.variance[chosen],
            tuple(part[chosen] for part in self.explained),
        )


@dataclass(frozen=True, eq=False)
class OutcomeProcess:
    """The Gaussian process of one outcome, given its measurements."""

    hyper: ProcessHyperparameters
    policies: FloatArray
    values: FloatArray
    weights: FloatArray

    def prior(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """k(tau, tau'), in the precision of `first`."""
        kernel = rbf(first, second.astype(first.dtype), self.hyper.length_scale)
        kernel += kernel.dtype.type(_CONSTANT)
        kernel *= kernel.dtype.type(self.hyper.amplitude**2)
        return kernel

    @property
    def variance(self) -> float:
        """k(tau, tau)."""
        return self.hyper.amplitude**2 * (1 + _CONSTANT)

    @cached_property
    def inverse_factor(self) -> FloatArray:
        """L^-1."""
        noise = self.hyper.noise**2 / self.weights
        return inverse_cholesky(add_to_diagonal(self.prior(self.policies, self.policies), noise))

    @cached_property
    def _single_factor(self) -> FloatArray:
        return np.ascontiguousarray(self.inverse_factor.T, dtype=np.float32)

    def solve(self, values: FloatArray) -> FloatArray:
        """A^-1 times these values."""
        return np.asarray(self.inverse_factor.T @ (self.inverse_factor @ values))

    @cached_property
    def solved(self) -> FloatArray:
        return self.solve(self.values - _MIDDLE)

    def at(self, policies: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean (n,), variance (n,) and `explained` (n, t)."""
        kernel = self.prior(policies, self.policies)
        mean = _MIDDLE + kernel @ self.solved.astype(kernel.dtype)
        single = kernel.dtype == np.float32
        explained = kernel @ (self._single_factor if single else self.inverse_factor.T)
        left = self.variance - np.einsum("ij,ij->i", explained, explained)
        return mean, np.maximum(left, 1e-8), explained


@dataclass(frozen=True, eq=False)
class OutcomeProcesses:
    """Independent processes, one per outcome."""

    processes: tuple[OutcomeProcess, ...]

    @cached_property
    def noise(self) -> FloatArray:
        """s of each outcome, (d_outcome,)."""
        return np.array([process.hyper.noise for process in self.processes])

    @property
    def policies(self) -> FloatArray:
        """The executed policies of the outcome that was measured most often."""
        return max((process.policies for process in self.processes), key=len)

    def at(self, policies: FloatArray, precision: type[np.floating] = np.float32) -> ProcessBelief:
        """The belief at these policies; measurement noise is such that single precision is enough.

        Double precision is for derivatives by differences.
        """
        points = policies.astype(precision)
        mean, variance, explained = zip(
            *(process.at(points) for process in self.processes), strict=True
        )
        return ProcessBelief(
            policies, np.stack(mean, axis=1), np.stack(variance, axis=1), tuple(explained)
        )

    def cross_covariance(self, first: ProcessBelief, second: ProcessBelief) -> FloatArray:
        """Covariance of two policies' outcomes, (first, second, d_outcome)."""
        one, other = first.policies.astype(np.float32), second.policies.astype(np.float32)
        return np.stack(
            [
                process.prior(one, other) - first.explained[j] @ second.explained[j].T
                for j, process in enumerate(self.processes)
            ],
            axis=2,
        )

    def draw(self, count: int, rng: np.random.Generator) -> Callable[[FloatArray], FloatArray]:
        """Draw `count` functions: policies (n, d) to outcomes (count, n, d_outcome), not clipped.

        A draw has one value per policy, wherever and whenever it is evaluated.
        """
        dimension = self.processes[0].policies.shape[1]
        frequencies = rng.standard_normal((_WAVES, dimension))
        phases = rng.uniform(0, 2 * np.pi, _WAVES)
        draws = [_Draws.of(each, frequencies, phases, count, rng) for each in self.processes]

        def outcomes(policies: FloatArray) -> FloatArray:
            single = policies.astype(np.float32)
            waves: dict[float, FloatArray] = {}  # outcomes of one length scale share them
            for process in self.processes:
                length = process.hyper.length_scale
                if length not in waves:
                    waves[length] = _waves(single, frequencies / length, phases)
            parts = [draw.at(single, waves[draw.process.hyper.length_scale]) for draw in draws]
            return np.stack(parts, axis=2)

        return outcomes


@dataclass(frozen=True, eq=False)
class _Draws:
    """Functions drawn from one process, by Matheron's rule."""

    process: OutcomeProcess
    amplitudes: FloatArray  # (M, count)
    levels: FloatArray  # (count,)
    corrections: FloatArray  # (t, count)

    @staticmethod
    def of(
        process: OutcomeProcess,
        frequencies: FloatArray,
        phases: FloatArray,
        count: int,
        rng: np.random.Generator,
    ) -> _Draws:
        hyper = process.hyper
        amplitudes = hyper.amplitude * np.sqrt(2 / _WAVES) * rng.standard_normal((_WAVES, count))
        levels = _MIDDLE + hyper.amplitude * np.sqrt(_CONSTANT) * rng.standard_normal(count)
        seen = _waves(process.policies, frequencies / hyper.length_scale, phases) @ amplitudes
        noise = hyper.noise / np.sqrt(process.weights)[:, None] * rng.standard_normal(seen.shape)
        surprise = process.values[:, None] - levels - seen - noise
        return _Draws(process, amplitudes, levels, process.solve(surprise))

    def at(self, policies: FloatArray, waves: FloatArray) -> FloatArray:
        """Values of the functions, (count, n)."""
        kind = policies.dtype
        drawn = waves @ self.amplitudes.astype(kind) + self.levels.astype(kind)
        kernel = self.process.prior(policies, self.process.policies)
        return np.asarray((drawn + kernel @ self.corrections.astype(kind)).T)


def _waves(policies: FloatArray, frequencies: FloatArray, phases: FloatArray) -> FloatArray:
    """cos(v_m^T tau + b_m), (n, M)."""
    angles = policies @ frequencies.T.astype(policies.dtype) + phases.astype(policies.dtype)
    return np.asarray(np.cos(angles, out=angles))


def outcome_processes(
    policies: FloatArray, outcomes: FloatArray, measurement: float, weights: FloatArray | None
) -> OutcomeProcesses:
    """The processes given executed policies and their outcomes, NaN where not measured."""
    weights = np.ones(len(policies)) if weights is None else weights
    processes: dict[int, OutcomeProcess] = {}
    for columns, rows in same_trials(outcomes):
        known = outcomes[rows][:, columns]
        for column, values, hyper in zip(
            columns, known.T, most_likely(policies[rows], known, measurement), strict=True
        ):
            processes[column] = OutcomeProcess(hyper, policies[rows], values, weights[rows])
    return OutcomeProcesses(tuple(processes[column] for column in sorted(processes)))


def most_likely(
    policies: FloatArray, outcomes: FloatArray, measurement: float
) -> list[ProcessHyperparameters]:
    """Hyperparameters of the largest evidence times prior on a grid, for each outcome."""
    step = -(-max(len(policies), 1) // _EVIDENCE_TRIALS)
    policies, away = policies[::step], outcomes[::step] - _MIDDLE
    least = max(measurement, _LEAST_NOISE)
    signal = _AMPLITUDES[:, None, None] ** 2
    noise = (_NOISE_FACTORS[None, :, None] * least) ** 2
    scores = []
    for length_scale in _LENGTH_SCALES:
        values, vectors = np.linalg.eigh(rbf(policies, policies, length_scale) + _CONSTANT)
        spectrum = signal * np.maximum(values, 0) + noise  # (amplitudes, noises, t)
        squares = (vectors.T @ away) ** 2
        fit = np.einsum("ijt,to->ijo", 1 / spectrum, squares)
        scores.append(-0.5 * (fit + np.log(spectrum).sum(axis=2)[:, :, None]))
    score = np.stack(scores) + _log_prior()[:, :, :, None]
    best = score.reshape(-1, outcomes.shape[1]).argmax(axis=0)
    places = np.unravel_index(best, score.shape[:3])
    return [
        ProcessHyperparameters(
            float(_LENGTH_SCALES[i]), float(_AMPLITUDES[j]), float(_NOISE_FACTORS[k] * least)
        )
        for i, j, k in zip(*places, strict=True)
    ]


def _log_prior() -> FloatArray:
    """Of the grid (lengths, amplitudes, noises), up to a constant."""
    length = -0.5 * (np.log(_LENGTH_SCALES / 0.5) / 0.35) ** 2
    amplitude = -0.5 * (np.log(_AMPLITUDES / 0.15) / 0.4) ** 2
    noise = -np.log(_NOISE_FACTORS) / 0.3
    return np.asarray(length[:, None, None] + amplitude[:, None] + noise)
