"""How a session is conducted, and which policies its operator has refused."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sfihilo.experiment.space.parameter import finite_number


@dataclass(frozen=True)
class Protocol:
    """How a session is conducted.

    After a break the anchor is walked again (`reanchor`), since nobody remembers yesterday's walk;
    a pause of more than `break_minutes` counts as one (None: only `interrupt` does). `drift`
    expects the person to adapt. A vetoed policy keeps `veto_radius` of the reachable range around
    it free of proposals for `veto_rounds` rounds; one that caused pain, `veto_radius` of the whole
    range until it is lifted.
    """

    reanchor: bool = True
    break_minutes: float | None = 60.0
    drift: bool = False
    veto_radius: float = 0.15
    veto_rounds: int = 10

    def __post_init__(self) -> None:
        for name in ("reanchor", "drift"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected true or false, got {getattr(self, name)!r}")
        if not 0 < finite_number(self.veto_radius, "veto_radius") < 0.5:
            raise ValueError(f"veto_radius: expected between 0 and 0.5, got {self.veto_radius}")
        if finite_number(self.veto_rounds, "veto_rounds") < 0:
            raise ValueError(f"veto_rounds: expected 0 or more, got {self.veto_rounds}")
        minutes = self.break_minutes
        if minutes is not None and not finite_number(minutes, "break_minutes") > 0:
            raise ValueError(f"break_minutes: expected above 0, got {minutes}")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Veto:
    """A policy (unit) that must not be proposed again, since when and why.

    A veto because of pain holds until it is lifted; others expire after `veto_rounds`.
    """

    round: int
    unit: tuple[float, ...]
    trial: int = 0
    why: str = ""
    pain: bool = False
    lifted: bool = False
    lifted_why: str = ""
