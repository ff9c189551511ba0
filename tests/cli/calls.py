"""A folder with a small space, and sessions driven as an operator drives them."""

import json
import sys
from typing import Any

from typer.testing import CliRunner

from sfihilo.cli.session.app import app

SPACE = """
constraints = ["x + y <= 15"]
[policy.x]
low = 0
high = 10
unit = "Nm"
[policy.y]
low = 0
high = 10
integer = true
[outcomes.effort]
low = 2
high = 8
unit = "W/kg"
soft = [3, 7]
[outcomes.comfort]
low = 0
high = 10
[session]
rule = "random"
"""


def run(*words: str, code: int = 0) -> str:
    """What a session command prints; its exit code is checked."""
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def loaded(*words: str, code: int = 0) -> Any:
    """What a session command gives a script."""
    return json.loads(run(*words, "--json", code=code))


def command_line(*words: str) -> list[str]:
    """The words of a new process that runs `sfihilo ...`."""
    return [sys.executable, "-c", "from sfihilo.cli.main import main; main()", *words]
