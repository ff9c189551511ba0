"""The steady state of a first-order response, such as metabolic rate from two minutes of breaths.

After a change of the policy, metabolic rate approaches its steady state exponentially, with a time
constant near 42 s (Selinger and Donelan 2014). Two minutes are too short to wait for it and enough
to estimate it.

Notation
    times           t_i   (n,)   seconds since the policy was applied
    values          y_i   (n,)   one per breath, irregular in time
    steady          s            what is estimated
    begin           b            the value at t = 0
    time_constant   tau          log-normal prior: median 42 s, standard deviation of its logarithm
    correlation     rho          of the errors of neighbouring breaths
    e_i                          independent errors of unknown variance, apart from rho

    y_i = s + (b - s) exp(-t_i / tau) + e_i

Given tau this is linear in s and b. Both have flat priors and the variance a scale-invariant one,
so that the posterior of tau is known up to a constant, and the mean and variance of s are sums
over a grid of tau.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from sfihilo.experiment.space.parameter import finite_number

FloatArray = npt.NDArray[np.floating]
NORMAL_MAD = 0.6745  # median absolute deviation of a standard normal variable
GRID = np.linspace(-3.5, 3.5, 57)  # values of tau, in standard deviations of its logarithm
ROUNDS = 10  # of looking for artefacts


class PoorDataError(ValueError):
    """The samples do not allow an estimate; the message says why."""


@dataclass(frozen=True)
class TransientSettings:
    """What is known about the response, and what is asked of the data.

    `spread` is the standard deviation of the logarithm of the time constant; 0 takes it as known.
    A breath is an artefact if it deviates by more than `artefact` robust standard deviations.
    """

    time_constant: float = 42.0
    spread: float = 0.28  # 12 s between people
    shortest: float = 90.0  # seconds from the change of the policy to the last breath
    fewest: int = 20  # breaths, without artefacts
    longest_gap: float = 30.0  # seconds
    artefact: float = 3.5
    most_artefacts: float = 0.3  # as a share of the breaths

    def __post_init__(self) -> None:
        for field in fields(self):
            value = finite_number(getattr(self, field.name), field.name)
            if value <= 0 and not (field.name == "spread" and value == 0):
                raise ValueError(f"{field.name}: expected a number above 0, got {value}")
        if self.fewest < 5:
            raise ValueError(f"fewest: expected at least 5, got {self.fewest}")


@dataclass(frozen=True)
class SteadyState:
    """The estimate and its standard error; how many breaths it rests on, how many were left out."""

    value: float
    standard_error: float
    time_constant: float
    used: int
    left_out: int


def metabolic_rate(oxygen: ArrayLike, carbon_dioxide: ArrayLike, mass: float) -> FloatArray:
    """Metabolic rate in W/kg from gas exchange in mL/min and mass in kg (Brockway 1987)."""
    if finite_number(mass, "mass") <= 0:
        raise ValueError(f"mass: expected kilograms above 0, got {mass}")
    per_second = np.asarray(oxygen, dtype=float) / 60, np.asarray(carbon_dioxide, dtype=float) / 60
    return np.asarray((16.58 * per_second[0] + 4.51 * per_second[1]) / mass)


def steady_state(
    times: ArrayLike, values: ArrayLike, settings: TransientSettings = TransientSettings()
) -> SteadyState:
    """The steady state that the response approaches.

    Raises PoorDataError where the data are too short, have a long gap, or have many artefacts.
    """
    t, y = _samples(times, values)
    count = len(t)
    finite = np.isfinite(y)
    t, y = t[finite], y[finite]
    _require_enough(t, settings)
    kept = _without_artefacts(t, y, settings)
    t, y = t[kept], y[kept]
    left_out = count - len(t)
    if left_out > settings.most_artefacts * count:
        raise PoorDataError(
            f"artefacts: expected at most {settings.most_artefacts:.0%} of the breaths, "
            f"got {left_out} of {count}"
        )
    _require_enough(t, settings)
    value, variance, time_constant = _posterior(t, y, settings)
    return SteadyState(value, float(np.sqrt(variance)), time_constant, len(t), left_out)


def _samples(times: ArrayLike, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Both as arrays, in the order of time, from the change of the policy on."""
    t, y = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if t.ndim != 1 or t.shape != y.shape:
        raise ValueError(
            f"times, values: expected two lists of one length, got shapes {t.shape} and {y.shape}"
        )
    if not np.all(np.isfinite(t)):
        raise ValueError("times: expected finite seconds, got others")
    order = np.argsort(t, kind="stable")
    order = order[t[order] >= 0]
    return t[order], y[order]


def _require_enough(t: FloatArray, settings: TransientSettings) -> None:
    if len(t) < settings.fewest:
        raise PoorDataError(f"breaths: expected at least {settings.fewest}, got {len(t)}")
    if t[-1] < settings.shortest:
        raise PoorDataError(
            f"duration: expected at least {settings.shortest:g} s since the policy was applied, "
            f"got {t[-1]:.0f} s"
        )
    gap = float(np.max(np.diff(t)))
    if gap > settings.longest_gap:
        raise PoorDataError(f"gap: expected at most {settings.longest_gap:g} s, got {gap:.0f} s")


def _design(t: FloatArray, time_constant: float) -> FloatArray:
    """Columns of s and b (n, 2)."""
    decay = np.exp(-t / time_constant)
    return np.stack([1 - decay, decay], axis=1)


def _without_artefacts(
    t: FloatArray, y: FloatArray, settings: TransientSettings
) -> npt.NDArray[np.bool_]:
    """Which breaths are no artefacts, by a robust fit and then by fits without artefacts."""
    design = _design(t, settings.time_constant)
    residuals: FloatArray = y - design @ _robust_fit(design, y)
    kept = np.ones(len(t), dtype=bool)
    for _ in range(ROUNDS):
        scale = float(np.median(np.abs(residuals[kept]))) / NORMAL_MAD
        now = np.abs(residuals) <= settings.artefact * scale
        if now.sum() < settings.fewest or np.array_equal(now, kept):
            return now
        kept = now
        residuals = y - design @ np.linalg.lstsq(design[kept], y[kept], rcond=None)[0]
    return kept


def _robust_fit(design: FloatArray, y: FloatArray) -> FloatArray:
    """Least absolute residuals by reweighting, which a few artefacts cannot move far."""
    weights: FloatArray = np.ones(len(y))
    fit: FloatArray = np.zeros(2)
    for _ in range(15):
        root = np.sqrt(weights)
        fit = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        residuals = np.abs(y - design @ fit)
        weights = 1 / np.maximum(residuals, 1e-3 * (float(np.median(residuals)) or 1.0))
    return fit


def _posterior(
    t: FloatArray, y: FloatArray, settings: TransientSettings
) -> tuple[float, float, float]:
    """Mean and variance of s, and mean of tau."""
    steps = GRID if settings.spread else np.zeros(1)
    taus = settings.time_constant * np.exp(settings.spread * steps)
    free = len(t) - 2
    designs = np.stack([_design(t, tau) for tau in taus])  # (taus, n, 2)
    transposed = np.swapaxes(designs, 1, 2)
    covariances = np.linalg.inv(transposed @ designs)
    fits = (covariances @ (transposed @ y)[:, :, None])[:, :, 0]
    residuals = y - (designs @ fits[:, :, None])[:, :, 0]
    squares = np.maximum(np.sum(residuals**2, axis=1), max(1e-12 * float(y @ y), 1e-300))
    means, variances = fits[:, 0], squares / free * covariances[:, 0, 0]
    volume = 0.5 * np.log(np.linalg.det(covariances))
    likelihood = -0.5 * free * np.log(squares)
    best = int(np.argmax(volume + likelihood))
    # Correlated errors carry less information: as many breaths as would be independent.
    inflation = _inflation(residuals[best])
    log_weights = volume + likelihood / inflation - steps**2 / 2
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = float(weights @ means)
    variance = float(weights @ (variances * inflation + (means - mean) ** 2))
    return mean, variance, float(weights @ taus)


def _inflation(residuals: FloatArray) -> float:
    """How much larger the variance of a mean is than with independent errors; at least 1."""
    power = float(residuals @ residuals)
    if power == 0:
        return 1.0
    rho = min(max(float(residuals[1:] @ residuals[:-1]) / power, 0.0), 0.8)
    return (1 + rho) / (1 - rho)
