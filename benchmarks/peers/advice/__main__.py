"""`python -m benchmarks.peers.advice`: the gap of the advice of peers, on the same people.

Rows (shape, method, user, query, gap, asked, commit) are appended to
results/peers/advice-SHAPE.csv, those of our own rules to results/advice/ours-SHAPE.csv. What is
there is not computed again, so the same command continues where it stopped. One process with one
thread, person by person.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from benchmarks.clock import ROOT, commit
from benchmarks.peers.advice.methods import METHODS
from benchmarks.peers.advice.people import SHAPES, UNTOUCHED, Person, person
from sfihilo.study.run.advice_gap import advice_curve

AT = (10, 20, 40, 60)
COLUMNS = ["shape", "method", "user", "query", "gap", "asked", "commit"]


def in_own_environment(methods: Sequence[str]) -> None:
    """Start again in .venv-peers when a method needs a package that is not installed here."""
    needed = {METHODS[name].needs for name in methods} - {None}
    absent = [name for name in needed if name and importlib.util.find_spec(name) is None]
    if not absent:
        return
    python = ROOT / ".venv-peers" / "bin" / "python"
    if not python.exists() or Path(sys.prefix) == ROOT / ".venv-peers":
        sys.exit(f"{', '.join(absent)}: not installed; run benchmarks/peers/setup")
    os.chdir(ROOT)
    os.execv(python, [str(python), "-m", "benchmarks.peers.advice", *sys.argv[1:]])


def file_of(method: str, shape: str, study_seed: int, folder: Path) -> Path:
    """Where a method's rows are; people of another study seed have files of their own."""
    seed = "" if study_seed == UNTOUCHED else f"-seed{study_seed}"
    if METHODS[method].peer:
        return folder / "peers" / f"advice-{shape}{seed}.csv"
    return folder / "advice" / f"ours-{shape}{seed}.csv"


def done(path: Path, method: str, user: int, queries: int) -> bool:
    """Whether the rows of a method with a person are there."""
    if not path.exists():
        return False
    rows = pd.read_csv(path)
    return bool(((rows.method == method) & (rows.user == user) & (rows["query"] == queries)).any())


def measured(method: str, who: Person, now: str, at: Sequence[int] = AT) -> pd.DataFrame:
    """The rows of one method with one person; `now` is the commit of the code."""
    curve = advice_curve(who.user, METHODS[method].make(who), at, who.best)
    wide = curve.pivot(index="query", columns="metric", values="value").reset_index()
    return pd.DataFrame(
        {
            "shape": who.shape,
            "method": method,
            "user": who.index,
            "query": wide["query"],
            "gap": wide["advice_gap"].round(6),
            "asked": wide["asked_reward"].round(6),
            "commit": now,
        },
        columns=COLUMNS,
    )


def append(path: Path, rows: pd.DataFrame) -> None:
    """All rows of a person in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = rows.to_csv(index=False, header=not path.exists(), lineterminator="\n")
    with path.open("a") as file:
        file.write(text)


def one_thread() -> None:
    """Torch and linear algebra in one thread, for as long as this process lives."""
    from threadpoolctl import threadpool_limits

    if importlib.util.find_spec("torch") is not None:
        import torch  # type: ignore[import-not-found]

        torch.set_num_threads(1)
    threadpool_limits(limits=1)


def main() -> None:
    """Runs what is missing."""
    arguments = argparse.ArgumentParser(description=__doc__)
    peers = [name for name, method in METHODS.items() if method.peer]
    arguments.add_argument("--method", nargs="+", choices=list(METHODS), default=peers)
    arguments.add_argument("--shape", choices=SHAPES, default="4x4")
    arguments.add_argument("--users", type=int, default=30)
    arguments.add_argument("--first", type=int, default=1, help="index of the first person")
    arguments.add_argument("--study-seed", type=int, default=UNTOUCHED)
    arguments.add_argument("--out", type=Path, default=ROOT / "results")
    chosen = arguments.parse_args()
    in_own_environment(chosen.method)
    one_thread()
    now = commit()
    for user in range(chosen.first, chosen.first + chosen.users):
        who: Person | None = None
        for method in chosen.method:
            path = file_of(method, chosen.shape, chosen.study_seed, chosen.out)
            if done(path, method, user, max(AT)):
                continue
            who = who or person(chosen.shape, user, chosen.study_seed)
            start = time.process_time()
            rows = measured(method, who, now)
            append(path, rows)
            took = time.process_time() - start
            gaps = " ".join(f"{gap:.3f}" for gap in rows.gap)
            print(f"{chosen.shape} {user} {method}: {gaps}; {took:.1f} s", flush=True)


if __name__ == "__main__":
    main()
