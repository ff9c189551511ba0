"""A lab's file: many sessions, many participants, one record."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import sfihilo
from sfihilo.experiment.log.chain import Verdict
from sfihilo.experiment.log.errors import DamagedError, KeyConflictError, LogError, StaleError
from sfihilo.experiment.log.event import FIELDS, Event, canonical
from sfihilo.experiment.log.store import Log
from sfihilo.experiment.output.text import counted
from sfihilo.experiment.record.fold import fold, opened
from sfihilo.experiment.record.protocol import Protocol
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.session.snapshots import Snapshots
from sfihilo.experiment.space.preflight import check_new
from sfihilo.experiment.space.space import Space

if TYPE_CHECKING:
    from sfihilo import Settings
    from sfihilo.settings import Goal

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
FORMAT = 1  # of the bodies of the events; the file's own format belongs to the log


@dataclass(frozen=True)
class Plan:
    """What a session is begun with: space, learner, protocol, seed (drawn and recorded if None)."""

    space: Space
    settings: Settings | None = None
    protocol: Protocol | None = None
    seed: int | None = None
    goal: Goal | None = None  # goes before the goal, or the rule, of the settings

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space):
            raise ValueError(f"space: expected a Space, got {type(self.space).__name__}")
        if not isinstance(self.settings, sfihilo.Settings | None):
            raise ValueError(f"settings: expected Settings, got {type(self.settings).__name__}")
        if not isinstance(self.protocol, Protocol | None):
            raise ValueError(f"protocol: expected a Protocol, got {type(self.protocol).__name__}")


class PlanOptions(TypedDict, total=False):
    """The fields of a `Plan` that `Lab.create` also takes one by one."""

    settings: Settings | None
    protocol: Protocol | None
    goal: Goal | None


class Lab:
    """A lab's file of sessions, made if there is none; use it in a `with` block.

    Args:
        path: the file. It is created for its owner only; keep it off network file systems.
        read_only: open it for reading; nothing is created or written.
        actor: who works with it; stored with every event.

    Raises:
        DamagedError: the file is a log, but not intact; `sfihilo session recover` saves the rest.
        NotALogError: the file is something else.

    Example:
        >>> import tempfile
        >>> from sfihilo.experiment import Lab, Outcome, Parameter, Space
        >>> space = Space(
        ...     policy={"torque": Parameter(0, 60, unit="Nm", max_step=15, start=0)},
        ...     outcomes={"comfort": Outcome(0, 10)},
        ... )
        >>> with tempfile.TemporaryDirectory() as folder, Lab(f"{folder}/study.db") as lab:
        ...     session = lab.create(space, participant="P07", seed=1)
        ...     print(lab.sessions(), session.ask().policy["torque"] <= 15)
        ['P07-1'] True
    """

    def __init__(
        self, path: str | Path, *, read_only: bool = False, actor: str | None = None
    ) -> None:
        snapshots = Path(f"{path}.snapshots")
        _require_not_emptied(Path(path), snapshots)
        self.log = Log.open(path, read_only=read_only)
        self.actor = actor
        self._snapshots = Snapshots(None if self.log.read_only else snapshots)
        self._sessions: list[Session] = []

    def __repr__(self) -> str:
        try:
            about = counted(len(self.sessions()), "session")
        except (LogError, ValueError):
            about = "closed or not readable"
        return f"<Lab {self.log.path}: {about}>"

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what runs in the background and let go of the file."""
        for session in self._sessions:
            session.leave()
        self.log.close()

    def create(
        self,
        space: Space | Plan,
        participant: str,
        seed: int | None = None,
        *,
        session: str | None = None,
        key: str | None = None,
        actor: str | None = None,
        **options: Unpack[PlanOptions],
    ) -> Session:
        """Begin a session in a space, or by a `Plan`.

        `participant` is a code; who it is goes to `identify`, if anywhere. `goal`, `settings` and
        `protocol` may be given as keywords. A seed that is not given is drawn; the record has it.
        With a `key`, repeating the call gives the session that it began; keys of `create` belong to
        the file.
        """
        plan = space if isinstance(space, Plan) else Plan(space, **options, seed=seed)
        if plan is space and (seed is not None or options):
            raise ValueError("create: expected seed, goal, settings and protocol within the Plan")
        seed = self._drawn_seed(key) if plan.seed is None else plan.seed
        return self._create(plan, participant, seed, session, key, actor or self.actor)

    def _drawn_seed(self, key: str | None) -> int:
        """A new seed; for a retry the one that was drawn the first time."""
        stored = None if key is None else self.log.begun(key)
        return secrets.randbelow(2**31) if stored is None else int(stored.body["seed"])

    def _create(
        self,
        plan: Plan,
        participant: str,
        seed: int,
        session: str | None,
        key: str | None,
        actor: str | None,
    ) -> Session:
        space = plan.space
        code = participant_code(participant)
        protocol = plan.protocol or Protocol()
        chosen = plan.settings or sfihilo.Settings()
        if plan.goal is not None:
            chosen = replace(chosen, goal=plan.goal, rule=None)
        settings = _fitted(chosen, space, protocol)
        sfihilo.begin(settings, seed)  # what the learner would refuse must not become a session
        check_new(space)
        body = {
            "format": FORMAT,
            "participant": code,
            "space": space.to_dict(),
            "settings": settings.to_dict(),
            "protocol": protocol.to_dict(),
            "seed": int(seed),
            "versions": _versions(),
        }
        _require_readable(body, space.functions)
        name = self._begun_before(session, body, key, actor)
        if name is None:
            try:
                name = self._begun(session, body, key, actor)
            except KeyConflictError:  # the same request came twice at once, and the other was first
                name = self._begun_before(session, body, key, actor)
                if name is None:
                    raise
        return self.open(name, functions=space.functions, actor=actor)

    def open(
        self,
        session: str,
        *,
        functions: Iterable[Callable[..., bool]] = (),
        actor: str | None = None,
    ) -> Session:
        """Continue a session; constraints that are functions have to be given again."""
        opened = Session(self.log, session, self._snapshots, actor or self.actor, functions)
        self._sessions.append(opened)
        return opened

    def sessions(self) -> list[str]:
        """Names of all sessions, oldest first."""
        return self.log.sessions()

    def record(self, session: str) -> Record:
        """The record of a session, for reading only."""
        events = list(self.log.events(session))
        if not events:
            raise ValueError(f"session: expected one of {self.sessions()}, got {session!r}")
        with reading(session):
            return fold(events)

    def records(self) -> tuple[dict[str, Record], dict[str, str]]:
        """The record of every session that can be read, and for each other one the reason."""
        records: dict[str, Record] = {}
        unreadable: dict[str, str] = {}
        for name in self.sessions():
            try:
                records[name] = self.record(name)
            except (ValueError, DamagedError) as error:
                unreadable[name] = str(error)
        return records, unreadable

    def export(
        self,
        folder: str | Path,
        sessions: Sequence[str] | None = None,
        formats: Iterable[str] = ("csv", "parquet", "jsonl"),
    ) -> list[Path]:
        """Write sessions (all unless told) into a folder; returns the files that were written."""
        from sfihilo.experiment.output.export import export

        return export(self, folder, sessions, formats)

    def verify(self, head: str | None = None) -> Verdict:
        """Check the whole record; names the first bad event.

        With `head`, a hash that `lab.log.head()` returned earlier, the record must contain it.
        """
        return self.log.verify(head)

    def identify(self, participant: str, identity: Mapping[str, Any]) -> None:
        """Keep who a participant is, apart from the record."""
        self.log.set_identity(participant_code(participant), identity)

    def identity(self, participant: str) -> dict[str, Any] | None:
        """Who a participant is, if it is kept."""
        return self.log.get_identity(participant_code(participant))

    def erase_identity(self, participant: str) -> bool:
        """Forget who a participant is; the record, which only has the code, stays as it is."""
        return self.log.erase_identity(participant_code(participant))

    def _begun_before(
        self, session: str | None, body: Mapping[str, Any], key: str | None, actor: str | None
    ) -> str | None:
        """The session already created under this key; library versions are not compared."""
        stored = None if key is None else self.log.begun(key)
        if stored is None:
            return None
        before = canonical({**stored.body, "versions": {}})
        same = before == canonical({**body, "versions": {}}) and stored.actor == actor
        if not same or session not in (None, stored.session):
            raise KeyConflictError(
                f"key {key!r} already identifies session {stored.session!r}, "
                "which was begun with another content"
            )
        return stored.session

    def _begun(
        self, session: str | None, body: Mapping[str, Any], key: str | None, actor: str | None
    ) -> str:
        """Write the first event of a session; returns its name, which was not taken."""
        code = body["participant"]
        if session is not None:
            name = session_name(session)
            try:
                self._write_first(name, body, key, actor)
            except StaleError:
                raise ValueError(f"session: expected a new name, {name!r} is taken") from None
            return name
        taken = set(self.log.sessions())
        for number in range(1, len(taken) + 1000):
            name = f"{code}-{number}"
            if name in taken:
                continue
            try:
                self._write_first(name, body, key, actor)
            except StaleError:
                continue  # somebody else just took it
            return name
        raise ValueError(f"session: no free name for {code}")

    def _write_first(
        self, name: str, body: Mapping[str, Any], key: str | None, actor: str | None
    ) -> None:
        self.log.append(name, "opened", body, key=key, expected=0, actor=actor, begins=True)


@contextmanager
def reading(session: str) -> Iterator[None]:
    """Raise ValueError, whatever is wrong with the content of a session's events."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        why = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else error
        raise ValueError(f"session {session!r} cannot be read: {why}") from error


def _require_not_emptied(path: Path, snapshots: Path) -> None:
    """Raise if the file is empty although it held sessions: it must not be begun anew unseen."""
    if path.is_file() and path.stat().st_size == 0 and snapshots.is_dir():
        raise DamagedError(
            f"{path} is empty, but {snapshots.name} shows that it held sessions: restore a backup, "
            "or remove that folder to begin anew"
        )


def participant_code(participant: object) -> str:
    """A participant's code; anything that looks like a name or an address is refused."""
    if not isinstance(participant, str) or not CODE.fullmatch(participant):
        raise ValueError(
            "participant: expected a code of up to 32 letters, digits, - and _ (no names: "
            f"personal data belong into identify), got {participant!r}"
        )
    return participant


def session_name(session: object) -> str:
    """A session's name."""
    if not isinstance(session, str) or not NAME.fullmatch(session):
        raise ValueError(
            f"session: expected up to 64 letters, digits, '.', '-' and '_', got {session!r}"
        )
    return session


def _fitted(settings: Settings, space: Space, protocol: Protocol) -> Settings:
    """The settings with the dimensions of the space and the drift mode of the protocol."""
    recency = settings.recency
    if protocol.drift and recency.variant == "unweighted":
        recency = replace(recency, variant="learned")
    return replace(
        settings, policy_dim=len(space.free), outcome_dim=len(space.outcomes), recency=recency
    )


def _require_readable(body: Mapping[str, Any], functions: Iterable[Callable[..., bool]]) -> None:
    """Raise if the session could not be read back: what is stored stays for ever."""
    fields = {**dict.fromkeys(FIELDS, ""), "seq": 1, "number": 1, "monotonic": 0}
    opened(Event.from_dict({**fields, "body": json.loads(canonical(body))}), functions)


def _versions() -> dict[str, str]:
    import platform  # needed once per session, and slow to load
    from importlib.metadata import version

    names = {name: version(name) for name in ("sfihilo", "numpy", "scipy")}
    return {
        **names,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
