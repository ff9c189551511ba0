"""A user's own query rule or reward features, given as "module:function" or "file.py:function"."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sfihilo.inverse import InverseSettings, feature_map
from sfihilo.querying import rule


@dataclass(frozen=True)
class Plugin:
    """A function by the name under which workers import it, and the folders where they search."""

    name: str
    search_path: tuple[str, ...]


def resolve_rule(name: str, search_path: Sequence[str]) -> Plugin:
    """The importable rule; raises a ValueError if workers could not use it."""
    return _resolved("rule", name, search_path, rule)


def resolve_reward(name: str, search_path: Sequence[str], outcome_dims: Iterable[int]) -> Plugin:
    """The importable reward features, after a trial call with each number of outcomes."""

    def try_out(importable: str) -> None:
        for dim in outcome_dims:
            settings = InverseSettings(features=importable)
            features = feature_map(settings, dim, np.random.default_rng(0))
            features(np.full((2, dim), 0.5))

    return _resolved("reward", name, search_path, try_out)


def extend_search_path(folders: Iterable[str]) -> None:
    """Puts the folders in front of `sys.path`, in their order, unless they are in it."""
    for folder in reversed(list(folders)):
        if folder not in sys.path:
            sys.path.insert(0, folder)


def _resolved(
    what: str, name: str, search_path: Sequence[str], resolve: Callable[[str], object]
) -> Plugin:
    before = sys.path[:]
    try:
        plugin = _importable(name, search_path)
        sys.path[:0] = plugin.search_path
        resolve(plugin.name)
    except ValueError as error:
        raise ValueError(f"{what} {name!r}: {error}") from error
    except (Exception, SystemExit) as error:  # a user's file may raise anything when imported
        raise ValueError(f"{what} {name!r}: {type(error).__name__}: {error}") from error
    finally:
        sys.path[:] = before
    return plugin


def _importable(name: str, search_path: Sequence[str]) -> Plugin:
    """``folder/file.py:function`` as ``file:function``, with the folder first on the path."""
    path, _, function = name.rpartition(":")
    if name.endswith(".py"):
        raise ValueError("expected file.py:function, got a file alone")
    if not path.endswith(".py"):
        return Plugin(name, tuple(search_path))
    file = Path(path).resolve()
    if not file.is_file():
        raise ValueError(f"there is no file {path}")
    loaded = sys.modules.get(file.stem)
    if loaded is not None and Path(getattr(loaded, "__file__", None) or "").resolve() != file:
        raise ValueError(f"another module is called {file.stem}: give the file another name")
    return Plugin(f"{file.stem}:{function}", (str(file.parent), *search_path))
