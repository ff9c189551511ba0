"""Functions that a user names in the settings as text, "module:function"."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def named_function(name: str, what: str, known: tuple[str, ...]) -> Callable[..., Any]:
    """The function that `name` points at, or an error that says what would have been understood."""
    expected = f"{what}: expected {', '.join(known)} or module:function"
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"{expected}, got {name!r}")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{expected}, got {name!r}: {error}") from error
    if not callable(function):
        raise ValueError(f"{expected}, got {name!r}, which cannot be called")
    return function  # type: ignore[no-any-return]
