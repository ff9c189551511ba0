"""What the file of a unit states about itself: settings, seeds, version, commit and machine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from sfihilo import provenance
from sfihilo.study.design.conditions import (
    Preset,
    Unit,
    derived_seed,
    learner_settings,
    preset_settings,
)

SHARED = ("queries", "study_seed", "evaluation", "users", "lean", "preset_digest")
# Determined at import: a user's own rule may load another BLAS, and the bytes of a unit must not
# depend on the units that its worker computed before.
ENVIRONMENT = provenance.environment(("numpy", "scipy", "optuna", "pandas", "pyarrow"))


@dataclass(frozen=True)
class Provenance:
    """The version and commit that compute a run; determined once, by the process that starts it."""

    version: str
    commit: str

    @staticmethod
    def here() -> Provenance:
        return Provenance(provenance.version("sfihilo"), provenance.commit())


def describe(unit: Unit, origin: Provenance) -> dict[str, Any]:
    """The description of a unit, as stored in its file."""
    return {
        "key": unit.key,
        "preset": unit.preset,
        "condition": asdict(unit.condition),
        "rule": unit.rule,
        "user": unit.user,
        **shared(unit),
        "user_seed": derived_seed(unit.study_seed, unit.user, "user"),
        "learner_seed": derived_seed(unit.study_seed, unit.user, "learner"),
        "settings": learner_settings(unit).to_dict(),
        "version": origin.version,
        "commit": origin.commit,
        "environment": ENVIRONMENT,
    }


def shared(unit: Unit) -> dict[str, Any]:
    """The part of the description that all units of a preset's folder share."""
    record = {**asdict(unit), "preset_digest": preset_digest(unit.preset)}
    return {name: record[name] for name in SHARED}


def preset_digest(preset: Preset) -> str:
    """Identifies the preset's settings, so that units of a changed preset are not mixed."""
    settings = preset_settings(preset).to_dict()
    if preset == "paper":  # `pairs` is used only by the default's rule
        del settings["pairs"]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
