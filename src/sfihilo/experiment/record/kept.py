"""What a partly named policy keeps: the settings of the last trial, or of the start."""

from __future__ import annotations

from collections.abc import Mapping

from sfihilo.experiment.record.record import Record


def last_policy(record: Record, before: int | None = None) -> tuple[str, Mapping[str, float]]:
    """Where the settings came from and what they were: the last trial that was carried out.

    Before any trial it is the start of the space, which may not name every parameter. If the device
    is certainly elsewhere, since the operator stated its place, it is that one. `before` leaves out
    a trial and all later ones.
    """
    last: tuple[str, Mapping[str, float]] = "the start", record.space.start
    for trial in reversed(record.trials[: None if before is None else before - 1]):
        carried_out = trial.started or trial.measured or trial.answered
        if carried_out and trial.ending != "undone":
            last = f"trial {trial.number}", trial.policy
            break
    places = record.positions
    if before is None and len(places) == 1 and places[0] != last[1]:
        return "the stated place", places[0]
    return last


def certain_settings(record: Record) -> dict[str, float]:
    """The free settings that a statement of the device's place may leave out.

    Those with a `max_step` must be the same at every place where the device may be. The others are
    as in the last trial.
    """
    last = last_policy(record)[1]
    found: dict[str, float] = {}
    for name in record.space.free:
        values = {place[name] for place in record.positions if name in place}
        if record.space.policy[name].max_step is None:
            values = {last[name]} if name in last else set()
        if len(values) == 1:
            found[name] = values.pop()
    return found


def kept_settings(record: Record, given: Mapping[str, object]) -> tuple[str, dict[str, float]]:
    """The free settings that `given` does not name, and where they come from."""
    source, last = last_policy(record)
    free = record.space.free
    return source, {name: last[name] for name in free if name not in given and name in last}
