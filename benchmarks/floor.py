"""The floor that the arithmetic sets: operations of one round at the rates measured here and now.

Counted are the matrix products and the elementwise functions that a Boundary Lookahead round of
the paper's sizes cannot do without, each once, in single precision where that changes no choice.
The leverage of the whole pool is listed but not summed: the learner computes only what the ranking
can need. So is the lookahead where a candidate really moves a target: the tangents at the target
samples are the part that no candidate avoids.

| name | symbol | paper |
| --- | --- | --- |
| observations | t | |
| pool | M_pool | 4000 |
| features, samples | m, S | 256, 512 |
| target samples | K_tar M_tar | 96 |
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfihilo import Settings
from sfihilo.refit import is_checkpoint


@dataclass(frozen=True)
class Rates:
    """Operations a second."""

    single: float  # matrix product, float32
    double: float  # matrix product, float64
    exponential: float  # exp of a float32
    cosine: float  # cos of a float32


def _rate(action: Callable[[], object], operations: float, repeats: int = 7) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return operations / statistics.median(seconds)


def measure_rates() -> Rates:
    """Products of a pool's size; functions on blocks that stay in the cache."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((4000, 256)), rng.standard_normal((256, 512))
    left32, right32 = left.astype(np.float32), right.astype(np.float32)
    block = rng.standard_normal((64, 512)).astype(np.float32)
    out = np.empty_like(block)
    product = 2.0 * 4000 * 256 * 512
    return Rates(
        single=_rate(lambda: left32 @ right32, product),
        double=_rate(lambda: left @ right, product),
        exponential=_rate(lambda: [np.exp(block, out=out) for _ in range(50)], 50.0 * block.size),
        cosine=_rate(lambda: [np.cos(block, out=out) for _ in range(50)], 50.0 * block.size),
    )


def floor_seconds(settings: Settings, observations: int, rates: Rates) -> dict[str, float]:
    """Least seconds of every part; "leverage of the whole pool" is not part of the sum."""
    query, inverse = settings.query, settings.inverse
    pool = query.pool_size(settings.policy_dim)
    looked_at = query.targets * query.target_samples
    s, t, d = inverse.samples, observations, settings.outcome_dim
    linear = inverse.features == "linear"
    m, cosine = (d, 0.0) if linear else (inverse.feature_count, 1.0 / rates.cosine)
    # An exponential and a reciprocal for each label probability; logarithms are of products.
    label = 2.0 / rates.exponential
    return {
        "append to the factor": 4.0 * t**2 / rates.double,
        "mode, one pass over the comparisons": 4.0 * t * m / rates.double,
        "precision, its factor, samples": (t * m**2 + m**3 / 3 + m**2 * s) / rates.double,
        "pool kernel": pool * t * (2.0 * (d + 2) / rates.single + 1.0 / rates.exponential),
        "pool outcomes": 2.0 * pool * t * d / rates.single,
        "pool features": pool * m * (2.0 * d / rates.single + cosine),
        "pool reward gaps": 2.0 * pool * m * s / rates.single,
        "pool labels": pool * s * label,
        "lookahead features, gaps and slopes": looked_at
        * m
        * (2.0 * (d + (1 + d) * s) / rates.single + 2.0 * cosine),
        "lookahead labels": looked_at * s * label,
        "leverage of the whole pool": 1.0 * pool * t**2 / rates.single,
    }


# Which parts of a round a rule cannot do without, by how their names begin.
_NEEDED = {
    "random": ("append", "mode"),
    "mutual_information": ("append", "mode", "precision", "pool"),
    "boundary_lookahead": ("append", "mode", "precision", "pool", "lookahead"),
}


def run_floor(settings: Settings, queries: int, rates: Rates) -> float:
    """Least seconds of a whole run: its rounds, and the kernel's grid at every checkpoint.

    People, evaluation and what drift adds (64 trials for the grid, new factors) are not in it.
    """
    counts = np.arange(1, queries + 1)
    needed = _NEEDED[settings.rule_name]
    rounds = sum(
        seconds
        for count in counts
        for name, seconds in floor_seconds(settings, int(count), rates).items()
        if name.startswith(needed)
    )
    forward = settings.forward
    known = np.minimum([count for count in counts if is_checkpoint(int(count))], forward.tuning_cap)
    trained = (1 - forward.validation_fraction) * known
    tried = len(forward.length_scales) * len(forward.ridges)
    return float(rounds + tried * np.sum(trained**3 / 3) / rates.double)
