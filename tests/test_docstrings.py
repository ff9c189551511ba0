"""The examples in docstrings run, and the public names have one."""

import doctest
import importlib
import pkgutil

import pytest

import sfihilo


def modules_with_examples() -> list[str]:
    found = []
    for module in pkgutil.walk_packages(sfihilo.__path__, "sfihilo."):
        spec = importlib.util.find_spec(module.name)
        source = spec.loader.get_source(module.name) if spec and spec.loader else None  # type: ignore[attr-defined]
        if source and ">>>" in source:
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", ["ask", "begin", "explain", "recommend", "save", "tell"])
def test_public_function_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(sfihilo, name).__doc__ or "")
