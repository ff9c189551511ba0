"""Many sessions at once over HTTP: python -m benchmarks.console_load

One server process, as `sfihilo serve` starts it. Each session has an operator's and a participant's
client and a simulated person who walks and answers `speed` times faster than real. Afterwards every
session is conducted again alone, without a server, and must be the same trial by trial.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from sfihilo.console.devices.simulated import SimulatedPerson, demo_toml
from sfihilo.experiment import Lab, Plan, Record
from sfihilo.experiment.session.plan_file import described, tables_of

WALK, THINK = 120.0, 10.0  # seconds of real time
PEOPLE = 4  # simulated persons with different taste; sessions differ in their seed


@dataclass
class Load:
    """What was measured: seconds per request, and per session how many trials were completed."""

    answer_to_query: list[float] = field(default_factory=list)
    requests: list[float] = field(default_factory=list)
    trials: dict[str, int] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    server_seconds: float = 0.0  # of processor time

    def summary(self) -> dict[str, float]:
        """The figures that are reported."""
        waits = np.array(self.answer_to_query) * 1000
        return {
            "sessions": len(self.trials),
            "trials": sum(self.trials.values()),
            "answers": len(waits),
            "requests": len(self.requests),
            "p50_ms": float(np.quantile(waits, 0.5)),
            "p99_ms": float(np.quantile(waits, 0.99)),
            "max_ms": float(waits.max()),
            "server_cpu_ms_per_trial": 1000 * self.server_seconds / sum(self.trials.values()),
        }


@contextmanager
def served(db: Path) -> Iterator[tuple[str, str]]:
    """A server in a process of its own; its address and the token of an operator."""
    code_file = db.with_suffix(".url")
    command = [sys.executable, "-c", "from sfihilo.cli.main import main; main()", "serve"]
    process = subprocess.Popen(
        [*command, "--db", str(db), "--port", "0", "--code-file", str(code_file)],
        stdout=subprocess.DEVNULL,
    )
    try:
        patience = time.monotonic() + 60
        while not code_file.exists() or not code_file.read_text().endswith("\n"):
            if process.poll() is not None or time.monotonic() > patience:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        address, _, code = code_file.read_text().strip().partition("/enter#")
        entered = _patient_post(address, code)
        yield address, entered["token"]
    finally:
        process.terminate()
        process.wait(30)


def _patient_post(address: str, code: str) -> dict[str, Any]:
    for _ in range(200):
        try:
            body = {"code": code, "bearer": True}
            done = httpx.post(f"{address}/api/enter", json=body, trust_env=False)
            found: dict[str, Any] = done.raise_for_status().json()
            return found
        except httpx.TransportError:
            time.sleep(0.05)
    raise RuntimeError("the server does not answer")


class Pair:
    """The operator's and the participant's client of one session."""

    def __init__(self, address: str, token: str, number: int, load: Load) -> None:
        self.load, self.number = load, number
        self.operator = _client(address, token)
        toml = plan_text()
        body = {
            "participant": f"L{number}",
            "toml": toml,
            "seed": number,
            "key": f"n{number}",
        }
        self.session = str(self.post(self.operator, "/api/sessions", body)["session"])
        wanted = {"role": "participant", "session": self.session}
        code = self.post(self.operator, "/api/pairings", wanted)["code"]
        entered = self.post(self.operator, "/api/enter", {"code": code, "bearer": True})
        self.participant = _client(address, entered["token"])
        self.person = SimulatedPerson(number % PEOPLE)

    def post(self, client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
        begun = time.perf_counter()
        done = client.post(path, json=body)
        self.load.requests.append(time.perf_counter() - begun)
        found: dict[str, Any] = done.raise_for_status().json()
        return found

    def act(self, action: str, **body: Any) -> dict[str, Any]:
        return self.post(self.operator, f"/api/sessions/{self.session}/{action}", body)

    def conduct(self, until: float, speed: float) -> None:
        """Trials until the time is over; the last one is finished."""
        trial = self.act("ask")["trial"]
        done = 0
        with Lab(self._db, read_only=True) as lab:
            while True:
                number = trial["trial"]
                self.act("start", trial=number)
                time.sleep(WALK / speed)
                outcome = self.person.outcomes(number, trial["policy"])
                self.act("measure", trial=number, outcome=outcome)
                time.sleep(THINK / speed)
                begun = time.perf_counter()
                if trial["asks_choice"]:
                    choice, strength = self.person.answer(lab.record(self.session))
                    begun = time.perf_counter()
                    body = {"trial": number, "choice": choice, "strength": strength}
                    self.post(
                        self.participant, "/api/participant/choose", {**body, "key": f"c{number}"}
                    )
                done += 1
                if time.monotonic() > until:
                    break
                asked = trial["asks_choice"]
                trial = self.act("ask", key=f"a{number + 1}")["trial"]
                if asked:
                    self.load.answer_to_query.append(time.perf_counter() - begun)
        self.load.trials[self.session] = done
        self.load.seeds[self.session] = self.number

    _db: Path = Path()


def plan_text() -> str:
    """The space of the demo with the learner's defaults: two answers, goal understand."""
    return demo_toml().partition("[session]")[0]


def _client(address: str, token: str) -> httpx.Client:
    return httpx.Client(
        base_url=address, headers={"authorization": f"Bearer {token}"}, timeout=60, trust_env=False
    )


def run(db: Path, sessions: int, seconds: float, speed: float) -> Load:
    """Conduct the sessions at the same time; returns what was measured."""
    load = Load()
    Pair._db = db
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with served(db) as (address, token):
        pairs = [Pair(address, token, number, load) for number in range(sessions)]
        load.requests.clear()
        until = time.monotonic() + seconds

        def conduct(pair: Pair) -> None:
            time.sleep((pair.number / sessions) * WALK / speed)  # people do not walk in step
            pair.conduct(until, speed)

        with ThreadPoolExecutor(sessions) as pool:
            list(pool.map(conduct, pairs))
        for pair in pairs:
            pair.operator.close()
            pair.participant.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    load.server_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return load


def alone(seed: int, trials: int, folder: Path) -> Record:
    """The same session without a server."""
    person = SimulatedPerson(seed % PEOPLE)
    plan = Plan(*described(tables_of(plan_text(), "load"), "load"), seed=seed)
    with Lab(folder / f"alone-{seed}.db") as lab:
        session = lab.create(plan, f"L{seed}")
        for _ in range(trials):
            trial = session.start(session.ask())
            trial = session.measure(trial, person.outcomes(trial.number, trial.policy))
            if trial.asks_choice:
                session.choose(trial, *person.answer(session.record))
        return session.record


def told(record: Record) -> list[Any]:
    """What happened in each complete trial."""
    return [
        (dict(t.policy), dict(t.outcome or {}), t.choice, t.strength)
        for t in record.trials
        if t.is_complete
    ]


def differing(db: Path, load: Load, folder: Path, most: int) -> list[str]:
    """The sessions that lost something or that differ from their solo run (at most `most` run)."""
    wrong = []
    with Lab(db, read_only=True) as lab:
        if not lab.verify().ok:
            wrong.append("the log is not intact")
        for session, trials in load.trials.items():
            if len(told(lab.record(session))) != trials:
                wrong.append(f"{session}: lost a trial")
        for session, trials in list(load.trials.items())[:most]:
            if told(alone(load.seeds[session], trials, folder)) != told(lab.record(session)):
                wrong.append(f"{session}: differs from its solo run")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--speed", type=float, default=20.0)
    parser.add_argument("--alone", type=int, default=20, help="sessions that are run again alone")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "load.db"
        load = run(db, given.sessions, given.seconds, given.speed)
        wrong = differing(db, load, Path(folder), given.alone)
    print(json.dumps({**load.summary(), "differing": wrong}, indent=1))


if __name__ == "__main__":
    main()
