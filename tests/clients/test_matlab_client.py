"""The MATLAB client, run by GNU Octave against the real console.

Its branch for MATLAB calls `webwrite`, which in Octave sends forms only: for that branch
`webwrite.m` of this folder stands in. MATLAB itself is not available to these tests.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.test_python_client import client_of
from tests.console.running import SPACE, Running, serving

ROOT = Path(__file__).parents[2]
OCTAVE = shutil.which("octave-cli")
pytestmark = pytest.mark.skipif(
    OCTAVE is None or shutil.which("curl") is None, reason="GNU Octave or curl is not installed"
)
BRANCHES = ["octave", "matlab"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("clients") / "study.db") as started:
        yield started


@pytest.fixture
def operator(running: Running) -> Any:
    return client_of(running, "operator")


def octave(script: str, branch: str, folder: Path) -> str:
    """What a script prints; Octave's first lines put the client into its path."""
    paths = [ROOT / "clients" / "matlab", *([Path(__file__).parent] if branch == "matlab" else [])]
    lines = [f"addpath('{path}');" for path in paths]
    file = folder / "script.m"
    file.write_text("1;\n" + "\n".join(lines) + "\n" + script, encoding="utf-8")
    environment = {**os.environ, "SFIHILO_WEBWRITE": "1" if branch == "matlab" else ""}
    assert OCTAVE is not None
    done = subprocess.run(
        [OCTAVE, "-qf", file],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )
    assert "error: " not in done.stderr.replace("error: ignoring const execution", ""), done.stderr
    return done.stdout


def joined_before_the_walk(running: Running, session: str) -> None:
    """As if the program ran already; Octave may take long to start."""
    running.console.devices.silent_after = 600.0
    client_of(running, "device", session).heartbeat(session)


@pytest.mark.parametrize("branch", BRANCHES)
def test_device_follows_a_session(
    running: Running, operator: Any, branch: str, tmp_path: Path
) -> None:
    session = operator.create(f"M1{branch}", SPACE, seed=3)
    code, _ = running.console.grants.pair("device", session)
    trial = operator.act(session, "ask")["trial"]
    joined_before_the_walk(running, session)
    operator.act(session, "start", trial=1)
    script = f"""
    function set_device(policy)
        printf("apply %.17g %.17g\\n", policy.torque, policy.timing);
    end
    function values = read_outcome()
        persistent asked
        if isempty(asked), asked = 0; end
        asked = asked + 1;
        values = [];
        if asked == 2, values = struct('effort', 4.5, 'comfort', NaN); end
    end
    function stop_device()
        printf("stop\\n");
    end
    function yes = finished(client)
        yes = isempty(client.device('{session}').trial);
    end
    client = sfihilo_client('{running.address}/', '{code}');
    again = sfihilo_client('{running.address}', '', client.token);
    sfihilo_device_loop(again, '{session}', @set_device, @read_outcome, @stop_device, ...
        @() finished(again));
    """
    lines = octave(script, branch, tmp_path).split("\n")
    policy = trial["policy"]
    assert lines[0] == "stop"
    word, torque, timing = lines[1].split()
    assert (word, float(torque), float(timing)) == ("apply", policy["torque"], policy["timing"])
    assert lines[2:] == ["stop", ""]
    [row] = operator.session(session)["trials"]
    assert row["outcome"] == {"effort": 4.5, "comfort": None}


@pytest.mark.parametrize("branch", BRANCHES)
def test_operator_conducts_a_trial_and_a_refusal_is_an_error(
    running: Running, operator: Any, branch: str, tmp_path: Path
) -> None:
    session = operator.create(f"M2{branch}", SPACE, seed=3)
    script = f"""
    client = sfihilo_client('{running.address}', '', '{operator.token}');
    made = client.act('{session}', 'ask', struct());
    printf("%d\\n", made.trial.trial);
    client.act('{session}', 'start', struct('trial', 1));
    values = struct('effort', 4.25, 'comfort', 6);
    client.act('{session}', 'measure', struct('trial', 1, 'outcome', values));
    client.act('{session}', 'note', struct('text', 'warm = 20 & "dry", 5 % Ä'));
    try
        client.act('{session}', 'measure', struct('trial', 7, 'outcome', values));
    catch problem
        printf("%s\\n", regexprep(problem.identifier, '.*HTTP', 'HTTP')(1:7));
    end
    view = client.session('{session}');
    printf("%s %d\\n", view.session, numel(view.trials));
    stopped = client.stop('{session}', 'enough');
    printf("%d\\n", stopped.stopped);
    """
    lines = octave(script, branch, tmp_path).split("\n")
    assert lines == ["1", "HTTP409", f"{session} 1", "1", ""]
    view = operator.session(session)
    assert view["trials"][0]["outcome"] == {"effort": 4.25, "comfort": 6.0}
    assert view["notes"][0]["text"] == 'warm = 20 & "dry", 5 % Ä'
    assert view["status"] == "interrupted"


def test_refused_outcome_is_a_warning_and_the_loop_goes_on(
    running: Running, operator: Any, tmp_path: Path
) -> None:
    session = operator.create("M3", SPACE, seed=3)
    token = client_of(running, "device", session).token
    operator.act(session, "ask")
    joined_before_the_walk(running, session)
    operator.act(session, "start", trial=1)
    script = f"""
    function yes = finished()
        persistent count
        if isempty(count), count = 0; end
        count = count + 1;
        yes = count > 4;
    end
    warning('off', 'sfihilo:refused');
    client = sfihilo_client('{running.address}', '', '{token}');
    sfihilo_device_loop(client, '{session}', @(policy) printf("apply\\n"), ...
        @() struct('effort', 99, 'comfort', 5), @() printf("stop\\n"), @finished);
    """
    assert octave(script, "octave", tmp_path).split() == ["stop", "apply", "stop"]
    assert operator.session(session)["trial"]["status"] == "started"


def test_console_that_is_not_there_is_tried_again_and_then_an_error(tmp_path: Path) -> None:
    script = """
    client = sfihilo_client('http://127.0.0.1:9', '', 'token');
    begun = tic();
    try
        client.applied('P1-1', 1);
    catch problem
        printf("%s %d\\n", problem.identifier, toc(begun) > 2);
    end
    """
    assert octave(script, "octave", tmp_path) == "sfihilo:network 1\n"


def test_token_never_stands_on_a_command_line() -> None:
    text = (ROOT / "clients" / "matlab" / "sfihilo_post.m").read_text(encoding="utf-8")
    [command] = [line for line in text.splitlines() if "system(" in line and "curl" in line]
    assert "token" not in command
