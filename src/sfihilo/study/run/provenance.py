"""What a result says about itself: version, commit, settings, seeds and the machine."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import scipy.linalg  # noqa: F401 - brings its own BLAS, which is asked for below
from threadpoolctl import threadpool_info

from sfihilo.study.design.conditions import (
    Preset,
    Unit,
    derived_seed,
    learner_settings,
    preset_settings,
)

SHARED = ("queries", "study_seed", "evaluation", "users", "lean", "preset_digest")


@dataclass(frozen=True)
class Provenance:
    """Where and by what a unit was computed; the same for every unit of one run on one machine."""

    version: str
    commit: str

    @staticmethod
    def here() -> Provenance:
        return Provenance(_version("sfihilo"), _commit(Path(__file__).parent))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def _commit(folder: Path) -> str:
    """The commit of the checkout that holds the package, marked when its sources were changed."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # An installed package may lie inside somebody else's checkout: that commit says nothing.
        if not git("ls-files", "--", "provenance.py"):
            return "unknown"
        changed = git("status", "--porcelain", "--untracked-files=no", "--", str(folder.parent))
        return git("rev-parse", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def environment() -> dict[str, str]:
    """What the last digits of a result depend on."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "scipy", "optuna", "pandas", "pyarrow")},
        "blas": _BLAS,
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
    }


def _blas() -> str:
    """The linear algebra that NumPy and SciPy brought, with the kernels it chose for this CPU."""
    parts = ("internal_api", "version", "architecture")
    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    names = {" ".join(str(info[part]) for part in parts if info.get(part)) for info in found}
    return ", ".join(sorted(names)) or "unknown"


# A user's own rule may load another one; a unit's bytes must not tell what its worker ran before.
_BLAS = _blas()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def describe(unit: Unit, provenance: Provenance) -> dict[str, Any]:
    """What a unit's file says about itself."""
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
        "version": provenance.version,
        "commit": provenance.commit,
        "environment": environment(),
    }


def shared(unit: Unit) -> dict[str, Any]:
    """What every unit of a preset's folder has in common."""
    record = {**asdict(unit), "preset_digest": preset_digest(unit.preset)}
    return {name: record[name] for name in SHARED}


def preset_digest(preset: Preset) -> str:
    """A name for the preset's settings, so that units of a changed preset are not mixed."""
    settings = preset_settings(preset).to_dict()
    if preset == "paper":  # what only the default's rule looks at may change
        del settings["pairs"]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]
