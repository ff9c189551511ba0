"""Text lines between the console and a real-time target; docs/how-to/devices.md describes them.

    SFI1 <link> <number> <VERB> [<name>=<value> ...] *<checksum>

link: a whole number that is larger the later the console was started. number: of the command, each
larger than the one before. checksum: CRC-32 of everything before " *", eight hexadecimal digits.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

Verb = Literal["HELLO", "APPLY", "MEASURE", "STOP", "BEAT", "ACK", "NAK"]
LONGEST = 1200  # bytes, so that a line is one datagram on every network
VERSION = "SFI1"
_LINE = re.compile(
    r"(SFI1 (\d{1,19}) (\d{1,10}) ([A-Z]{1,8})((?: [^ =]+=[^ =]+)*)) \*([0-9A-F]{8})"
)


@dataclass(frozen=True)
class Line:
    """One line, parsed."""

    link: int
    number: int
    verb: Verb
    fields: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The line as bytes, with its checksum and a line feed."""
        words = [f"{name}={value}" for name, value in self.fields.items()]
        text = " ".join([VERSION, str(self.link), str(self.number), self.verb, *words])
        raw = f"{text} *{checksum(text.encode())}\n".encode()
        if len(raw) > LONGEST or parse(raw) != self:
            raise ValueError(
                f"line: expected ASCII words without spaces, {LONGEST} bytes at most, "
                f"got {len(raw)} bytes {text[:80]!r}"
            )
        return raw


def checksum(text: bytes) -> str:
    """CRC-32 as in zlib and Ethernet, in hexadecimal."""
    return f"{zlib.crc32(text):08X}"


def parse(raw: bytes) -> Line | None:
    """The line, or None if it is anything else or was changed on its way."""
    try:
        text = raw.decode("ascii").rstrip("\r\n")
    except UnicodeDecodeError:
        return None
    found = _LINE.fullmatch(text)
    if found is None or len(raw) > LONGEST:
        return None
    body, link, number, verb, words, given = found.groups()
    if checksum(body.encode()) != given or verb not in get_args(Verb):
        return None
    pairs = [word.partition("=")[::2] for word in words.split()]
    fields = dict(pairs)
    if len(fields) != len(pairs):
        return None
    return Line(int(link), int(number), cast(Verb, verb), fields)


def numbers_as_text(values: Mapping[str, float | None]) -> dict[str, str]:
    """Every digit that a float has; nan for what is missing."""
    return {name: "nan" if value is None else repr(float(value)) for name, value in values.items()}


def numbers_from_text(fields: Mapping[str, str]) -> dict[str, float | None]:
    """The numbers of a line, None where it says nan; raises ValueError for anything else."""
    values = {name: float(text) for name, text in fields.items()}
    if any(math.isinf(value) for value in values.values()):
        raise ValueError(f"numbers: expected finite ones or nan, got {dict(fields)}")
    return {name: None if math.isnan(value) else value for name, value in values.items()}


class LineSplitter:
    """Cuts a stream of bytes into lines; what is too long to be a line is thrown away."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterable[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            self._rest = b""
        return lines
