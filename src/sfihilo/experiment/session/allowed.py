"""Which policies may be proposed: one step from where the device may be, constraints, vetoes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

import sfihilo
from sfihilo.experiment.record.protocol import Veto
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.space.parameter import FloatArray
from sfihilo.experiment.space.safety import in_words
from sfihilo.experiment.space.space import Space
from sfihilo.history import BoolArray

if TYPE_CHECKING:
    from sfihilo import Feasible


def is_painful(record: Record, units: FloatArray) -> BoolArray:
    """Which of many unit policies (n, d_policy) are near one that was vetoed because of pain."""
    return is_near(record, units, record.painful)


def is_near(record: Record, units: FloatArray, vetoes: Sequence[Veto]) -> BoolArray:
    """Which of many unit policies (n, d_policy) are near one of these vetoes.

    Near: within `veto_radius` of the range, in every parameter, once the policy is on the grid. The
    range is what one step around the vetoed policy reaches; for pain it is the declared one.
    """
    space = record.space
    units = np.atleast_2d(units)
    near = np.zeros(len(units), dtype=bool)
    set_values = _as_set(space, units) if vetoes else units
    for veto in vetoes:
        centre = np.array(veto.unit)
        lower, upper = space.box(() if veto.pain else (space.to_policy(centre),))
        near |= _near(set_values, centre, upper - lower, record.protocol.veto_radius)
    return near


def feasible_now(record: Record, vetoes: Iterable[Veto]) -> Feasible | None:
    """What may be proposed next: one step from where the device may be, constraints, vetoes."""
    space = record.space
    lower, upper = space.box(record.positions)
    width = upper - lower
    avoided = [np.array(veto.unit) for veto in vetoes]
    radius = record.protocol.veto_radius

    def accepts(units: FloatArray) -> BoolArray:
        allowed = space.allows(units) & ~is_painful(record, units)
        set_values = _as_set(space, units) if avoided else units
        for centre in avoided:
            allowed &= ~_near(set_values, centre, width, radius)
        return allowed

    restricted = bool(space.constraints or avoided or record.painful)
    if not restricted and (lower == 0).all() and (upper == 1).all():
        return None  # the whole cube: the bare loop's own query, draw for draw
    return sfihilo.Feasible(lower=lower, upper=upper, accepts=accepts if restricted else None)


def _as_set(space: Space, units: FloatArray) -> FloatArray:
    """Unit policies (n, d_policy) as they are set on the device: on the grid."""
    columns = space.columns(units)
    return np.stack([space.policy[name].to_unit(columns[name]) for name in space.free], axis=1)


def _near(units: FloatArray, centre: FloatArray, width: FloatArray, radius: float) -> BoolArray:
    gap = np.abs(units - centre)
    share = np.divide(gap, width, out=np.zeros_like(gap), where=width > 0)
    return np.asarray((share < radius).all(axis=1))


def recent_vetoes(record: Record, round: int) -> list[Veto]:
    """The vetoes for other reasons than pain that have not expired, the oldest first."""
    return [
        veto
        for veto in record.vetoes
        if not veto.pain and round - veto.round <= record.protocol.veto_rounds
    ]


def way_out(record: Record) -> str:
    """What the operator can do when no policy, or not the one that is wanted, is allowed."""
    text = ""
    if len(record.positions) > 1:
        where = " or ".join(in_words(place) for place in record.positions)
        text += f"; the device may be at {where}: say where it is with `place`"
    if record.painful:
        trials = ", ".join(str(veto.trial) for veto in record.painful)
        text += (
            f"; vetoes because of pain hold (trial {trials}): `lift` ends one, or move the device "
            "away by hand and say where it is with `place`"
        )
    return text
