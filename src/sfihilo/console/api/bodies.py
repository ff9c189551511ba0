"""The JSON bodies of requests; unknown fields and wrong types are refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Short = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(max_length=200)]
Values = Annotated[dict[Name, float], Field(max_length=200)]
Measured = Annotated[dict[Name, float | None], Field(max_length=200)]
Number = Annotated[int, Field(ge=1, le=10**9)]
Choice = Literal["new", "previous", "same"]


class Body(BaseModel):
    """A body; types are exact."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Action(Body):
    """Something done in a session.

    `key`: the same key twice is done once. `expected`: number or hash of the last event that the
    client has seen; a later event refuses the action.
    """

    key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    expected: (
        Annotated[int, Field(ge=0, le=10**9)]
        | Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
        | None
    ) = None


class Why(Action):
    """An action with a reason."""

    why: Short = ""


class OfTrial(Action):
    """An action on a trial."""

    trial: Number


class WithReason(OfTrial):
    """An action on a trial with a reason for the record."""

    why: Short


class Ending(WithReason):
    """The early end of a trial; `pain` keeps proposals away from it until it is lifted."""

    pain: bool = False


class Suggestion(Why):
    """A policy of the operator."""

    policy: Values


class Measurement(OfTrial):
    """A measured outcome; null where it could not be measured."""

    outcome: Measured | None


class Answer(OfTrial):
    """The person's answer; null for "cannot say"."""

    choice: Choice | None
    strength: Annotated[int, Field(ge=1, le=9)] | None = None


class Amendment(WithReason):
    """A correction; a field that is absent stays as it is."""

    outcome: Measured | None = None
    choice: Choice | None = None
    strength: Annotated[int, Field(ge=1, le=9)] | None = None


class Note(Action):
    """A note."""

    text: Short


class Goal(Why):
    """What the queries are for from the next trial on."""

    goal: Literal["understand", "best"]


class NewSession(Body):
    """A session to begin: a TOML text, or its tables as JSON."""

    participant: Name
    toml: Annotated[str, Field(max_length=100_000)] | None = None
    form: dict[str, Any] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    goal: Literal["understand", "best"] | None = None
    key: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Wanted(Body):
    """What an advice is asked for: narrower ranges, policies to compare it with."""

    feasible: dict[Name, Annotated[list[float], Field(min_length=2, max_length=2)]] | None = None
    compare_with: dict[Name, Values] | None = None


class Stop(Body):
    """A stop: everything in it may be left out."""

    why: Short = ""
    key: Name | None = None


class Code(Body):
    """A code to exchange for a token; `bearer` returns it for programs instead of a cookie."""

    code: Annotated[str, Field(min_length=1, max_length=200)]
    bearer: bool = False


class Pairing(Body):
    """A page or device to pair."""

    role: Literal["operator", "participant", "device", "auditor"]
    session: Name | None = None
    name: Name = ""


class ToDevice(Body):
    """A request about a session's device: it writes no event, so `key` only names the request."""

    key: Name | None = None


class Attached(ToDevice):
    """The device that a session uses; null for none."""

    device: Name | None


class Nothing(Body):
    """An empty body."""
