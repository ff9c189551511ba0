"""Policy -> outcome: the forward belief (paper appendix "Forward KRR ...")."""

from sfihilo.forward.belief import (
    ForwardBelief,
    PolicyBelief,
    Prediction,
    Reducible,
    TargetUpdate,
    append,
    fit,
    reducible,
    sample,
    target_update,
)
from sfihilo.forward.ridge import ForwardSettings, Hyperparameters, standardisation

__all__ = [
    "ForwardBelief",
    "ForwardSettings",
    "Hyperparameters",
    "PolicyBelief",
    "Prediction",
    "Reducible",
    "TargetUpdate",
    "append",
    "fit",
    "reducible",
    "sample",
    "standardisation",
    "target_update",
]
