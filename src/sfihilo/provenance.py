"""What computed a result: the commit, the versions of packages, and the machine.

Used by the study, the experiment and the benchmarks.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

PACKAGE = Path(__file__).parent


def version(package: str) -> str:
    """The installed version of a package, or "unknown"."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The installed version per package."""
    return {name: version(name) for name in packages}


def commit() -> str:
    """The commit of the checkout that contains the package, or "unknown".

    The suffix "-changed" means that tracked files of the package differ from the commit.
    """
    try:
        # A package installed inside another project's checkout does not belong to its commit.
        if not _git("ls-files", "--", Path(__file__).name):
            return "unknown"
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", str(PACKAGE))
        return _git("rev-parse", "HEAD") + ("-changed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def system() -> str:
    """The operating system and the machine type, e.g. "Linux x86_64"."""
    return f"{platform.system()} {platform.machine()}"


def processor() -> str:
    """The model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def blas() -> str:
    """The BLAS libraries in this process, with the kernels that they chose for the processor."""
    import scipy.linalg  # noqa: F401 - loads its own BLAS
    from threadpoolctl import threadpool_info

    parts = ("internal_api", "version", "architecture")
    loaded = [info for info in threadpool_info() if info["user_api"] == "blas"]
    names = {" ".join(str(info[part]) for part in parts if info.get(part)) for info in loaded}
    return ", ".join(sorted(names)) or "unknown"


def environment(packages: Iterable[str]) -> dict[str, str]:
    """Everything that the last digits of a result depend on."""
    return {
        "python": platform.python_version(),
        **versions(packages),
        "blas": blas(),
        "system": system(),
        "cpu": processor(),
    }
