"""One number per trial from the samples of a channel during a window of time."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from sfihilo.experiment.estimators.transient import PoorDataError, steady_state

Summary = Literal["mean", "median", "last", "transient"]
SUMMARIES: tuple[Summary, ...] = get_args(Summary)


def summary(times: ArrayLike, values: ArrayLike, by: Summary) -> float:
    """Mean, median or last of the finite samples, or the steady state that they approach.

    times: seconds since the policy was applied. Raises PoorDataError where there is no number.
    """
    if by not in SUMMARIES:
        raise ValueError(f"by: expected one of {', '.join(SUMMARIES)}, got {by!r}")
    if by == "transient":
        return steady_state(times, values).value
    t, y = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if t.ndim != 1 or t.shape != y.shape:
        raise ValueError(
            f"times, values: expected two lists of one length, got shapes {t.shape} and {y.shape}"
        )
    finite = np.isfinite(y)
    if not finite.any():
        raise PoorDataError(f"samples: expected at least one finite value, got none of {len(y)}")
    order = np.argsort(t[finite], kind="stable")
    kept = y[finite][order]
    if by == "last":
        return float(kept[-1])
    return float(np.mean(kept) if by == "mean" else np.median(kept))
