"""The texts of the pages: one TOML file per language, the same tables in each."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "texts"
DEFAULT = "en"


@cache
def languages() -> tuple[str, ...]:
    """The languages that there are, English first."""
    found = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return tuple(sorted(found, key=lambda name: name != DEFAULT)) or (DEFAULT,)


@cache
def texts(language: str) -> dict[str, Any]:
    """The texts of a language; what it lacks is English."""
    if language not in languages():
        raise ValueError(f"language: expected one of {', '.join(languages())}, got {language!r}")
    path = FOLDER / f"{language}.toml"
    own = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return own if language == DEFAULT else _filled(own, texts(DEFAULT))


def _filled(own: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _filled(own.get(name, {}), value) if isinstance(value, dict) else own.get(name, value)
        for name, value in other.items()
    }


def preferred(asked: str | None, kept: str | None, accepted: str) -> str:
    """The language of a page: asked for, kept in a cookie, accepted by the browser, English."""
    wishes = [asked, kept]
    wishes += [part.partition(";")[0].strip()[:2].lower() for part in accepted.split(",")[:10]]
    return next((wish for wish in wishes if wish in languages()), DEFAULT)
