"""`python -m benchmarks.whole_run ROUNDS RULE`: one run; prints its seconds and peak memory."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from benchmarks import scenario
from sfihilo import Settings, ask, begin, recommend, tell


def run(rounds: int, rule: str) -> dict[str, float]:
    """Ask and tell from nothing, then recommend."""
    user = scenario.person()
    start = time.process_time()
    state = begin(Settings.paper(rule=rule), 0)
    for _ in range(rounds + 1):
        query = ask(state)
        state = tell(state, query, user.respond(query))
    looped = time.process_time() - start
    recommend(state)
    return {"comparisons": float(rounds), "seconds": looped, "peak_mb": peak_kilobytes() / 1024}


def peak_kilobytes() -> int:
    """The most memory that this program held. `ru_maxrss` would count that of who started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [line] = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1])


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), sys.argv[2])))
