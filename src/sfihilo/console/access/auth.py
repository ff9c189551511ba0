"""Who may do what: roles, the codes that are exchanged for a token, and the tokens.

A code is shown or printed once, is used once, and expires. Exchanged, it gives a token of 256
random bits, of which only the SHA-256 digest is kept, in a file beside the lab's that its owner
alone can read. So pages recover after a restart of the server, and nobody can use the file as a
token.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Literal, get_args

from sfihilo.experiment.files import replacing

Role = Literal["operator", "participant", "device", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)
DAY = 24 * 3600.0
LIFETIMES: dict[Role, float] = {
    "operator": 7 * DAY, "participant": DAY, "device": 365 * DAY, "auditor": 30 * DAY,
}  # fmt: skip
CODE_LIFETIME = 600.0  # seconds in which a pairing code has to be used
ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # no 0, 1, I, O: read aloud and typed with gloves
CODE_LENGTH = 8
MOST_CODES = 200
MARK = b'{"console": 1,'  # how the file of grants begins
LONGEST_LABEL = 60


@dataclass(frozen=True)
class Grant:
    """What the holder of a token may do: a role, within one session or in all, until when."""

    id: str
    digest: str
    role: Role
    session: str | None
    name: str
    since: float
    expires: float

    @property
    def actor(self) -> str:
        """Who this is in the record."""
        return f"{self.role} {self.name}" if self.name else self.role


@dataclass(frozen=True)
class Code:
    """A code that waits to be exchanged; None as `expires`: as long as the server runs."""

    digest: str
    role: Role
    session: str | None
    name: str
    expires: float | None


def digest_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def plain_code(text: str) -> str:
    """A pairing code as it is compared: capitals without dashes and blanks."""
    short = text.replace("-", "").replace(" ", "").upper()
    return short if len(short) == CODE_LENGTH else text.strip()


def label(name: str) -> str:
    """Validates the label of a person or device in the record; it must not be a personal name."""
    text = name.strip()
    if len(text) > LONGEST_LABEL or not (text.isprintable() or not text):
        raise ValueError(
            f"name: expected up to {LONGEST_LABEL} printable characters, got {name[:80]!r}"
        )
    return text


class Grants:
    """The codes and tokens of one console; threads may share it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._lock = RLock()
        self._codes: dict[str, Code] = {}
        self._grants = self._read()

    def start_code(self, name: str = "") -> str:
        """A long code for the operator, good for one use while this server runs."""
        return self._keep_code(secrets.token_urlsafe(32), "operator", None, name, None)

    def pair(self, role: Role, session: str | None, name: str = "") -> tuple[str, float]:
        """A short code for a page or device, and when it expires."""
        expires = self._clock() + CODE_LIFETIME
        drawn = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
        return self._keep_code(drawn, role, session, name, expires), expires

    def exchange(self, text: str) -> tuple[str, Grant] | None:
        """The token and what it allows, once; None for a code that is unknown, used or expired."""
        now, digest = self._clock(), digest_of(plain_code(text))
        with self._lock:
            found = None
            for code in self._codes.values():  # all of them: the time says nothing about the code
                if hmac.compare_digest(code.digest, digest):
                    found = code
            if found is None:
                return None
            if found.expires is not None and found.expires < now:
                del self._codes[found.digest]
                return None
            token = secrets.token_urlsafe(32)
            grant = Grant(
                id=secrets.token_hex(6),
                digest=digest_of(token),
                role=found.role,
                session=found.session,
                name=found.name,
                since=now,
                expires=now + LIFETIMES[found.role],
            )
            before = self._grants
            try:
                self._write([*self._alive(), grant])
            except OSError:
                self._grants = before  # nobody has the token; the code can be used again
                raise
            del self._codes[found.digest]
            return token, grant

    def holder(self, token: str | None) -> Grant | None:
        """What a token allows; None if it is unknown, expired or revoked."""
        if not token:
            return None
        digest, found = digest_of(token), None
        with self._lock:
            for grant in self._grants:
                if hmac.compare_digest(grant.digest, digest):
                    found = grant
        return found if found is not None and found.expires > self._clock() else None

    def holds(self, grant: Grant) -> bool:
        """Whether a grant is still in force."""
        with self._lock:
            return grant in self._alive()

    def all(self) -> list[Grant]:
        """The grants in force."""
        with self._lock:
            return self._alive()

    def revoke(self, grant_id: str) -> bool:
        """End a grant at once; False if there is none."""
        with self._lock:
            left = [grant for grant in self._alive() if grant.id != grant_id]
            found = len(left) < len(self._alive())
            if found:
                self._write(left)
            return found

    def _alive(self) -> list[Grant]:
        now = self._clock()
        return [grant for grant in self._grants if grant.expires > now]

    def _keep_code(
        self, text: str, role: Role, session: str | None, name: str, expires: float | None
    ) -> str:
        now = self._clock()
        with self._lock:
            self._codes = {
                digest: code
                for digest, code in self._codes.items()
                if code.expires is None or code.expires >= now
            }
            if len(self._codes) >= MOST_CODES:
                raise ValueError(f"pairings: expected at most {MOST_CODES} open codes at a time")
            digest = digest_of(text)
            self._codes[digest] = Code(digest, role, session, name, expires)
        return text

    def _read(self) -> list[Grant]:
        if not self._path.exists():
            return []
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            return [Grant(**fields) for fields in stored["grants"] if fields["role"] in ROLES]
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(
                f"{self._path}: expected the console's own file, got something else ({error}); "
                "without it everybody has to pair again, and nothing else is lost"
            ) from error

    def _write(self, grants: Iterable[Grant]) -> None:
        self._grants = [replace(grant) for grant in grants]
        text = json.dumps({"grants": [asdict(grant) for grant in self._grants]})
        with replacing(self._path, MARK) as partial:
            os.chmod(partial, 0o600)
            partial.write_bytes(MARK + b" " + text[1:].encode())


class Attempts:
    """Counts wrong codes per address and overall, so that codes cannot be guessed."""

    def __init__(
        self, each: int = 8, overall: int = 60, window: float = 60.0, most: int = 1000
    ) -> None:
        self._each, self._overall, self._window, self._most = each, overall, window, most
        self._wrong: list[tuple[float, str]] = []
        self._lock = RLock()

    def wait(self, address: str, now: float | None = None) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        now = time.monotonic() if now is None else now
        with self._lock:
            self._wrong = [
                (at, who) for at, who in self._wrong[-self._most :] if at > now - self._window
            ]
            own = [at for at, who in self._wrong if who == address]
            waits = [0.0]
            if len(own) >= self._each:
                waits.append(own[-self._each] + self._window - now)
            if len(self._wrong) >= self._overall:
                waits.append(self._wrong[-self._overall][0] + self._window - now)
            return max(waits)

    def failed(self, address: str, now: float | None = None) -> None:
        """Note a wrong code."""
        with self._lock:
            self._wrong.append((time.monotonic() if now is None else now, address))
