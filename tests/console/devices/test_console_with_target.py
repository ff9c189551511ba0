"""The whole way: requests to the real console, a target on a real socket, its silence a hold."""

from pathlib import Path
from typing import Any

from tests.console.devices.wires import LOOPBACK, Machine, udp_target
from tests.console.running import act, create, serving, until, view

PATIENCE = 60.0  # seconds: a busy machine is slow, not wrong


def test_target_of_a_toml_file_is_applied_measured_and_missed(tmp_path: Path) -> None:
    machine = Machine(outcome={"effort": 4.5, "comfort": None})
    target = machine.target()
    with udp_target(target) as port:
        file = tmp_path / "exo.toml"
        file.write_text(
            f'[[device]]\nuse = "udp"\nhost = "{LOOPBACK}"\nport = {port}\ntimeout = 2.0\n'
        )
        with serving(tmp_path / "study.db", devices=(str(file),), heartbeat_limit=6.0) as running:
            operator = running.client("operator")
            session = create(operator)
            done = operator.post(f"/api/sessions/{session}/device", json={"device": "exo"})
            assert done.status_code == 200, done.text
            policy: Any = act(operator, session, "ask")["trial"]["policy"]
            assert machine.done == []
            act(operator, session, "start", trial=1)
            until(lambda: view(operator, session)["trials"][0]["outcome"] is not None, PATIENCE)
            assert view(operator, session)["trials"][0]["outcome"] == {
                "effort": 4.5,
                "comfort": None,
            }
            assert machine.done == [policy, "measure"]

            machine.outcome = None  # the second walk is not over when the target falls silent
            act(operator, session, "ask")
            act(operator, session, "start", trial=2)
            until(lambda: len(machine.done) > 3, PATIENCE)
            target.reply = lambda raw: None  # type: ignore[method-assign]
            until(lambda: view(operator, session)["status"] == "interrupted", PATIENCE)
            assert view(operator, session)["device"]["state"] == "silent"
