"""`python -m benchmarks.whole_run ROUNDS RULE`: one run; prints its seconds and peak memory."""

from __future__ import annotations

import json
import resource
import sys
import time

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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"comparisons": float(rounds), "seconds": looped, "peak_mb": peak / 1024}


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), sys.argv[2])))
