"""Policy -> outcome: the forward belief (paper appendix "Forward KRR ...")."""

from sfihilo.forward.belief import (
    ForwardBelief,
    ForwardSettings,
    Hyperparameters,
    PolicyBelief,
    Prediction,
    Reducible,
    TargetUpdate,
    append,
    fit,
    reducible,
    sample,
    standardisation,
    target_update,
)

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
