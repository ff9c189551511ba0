"""The report of a session: what to set, what drives the preference, how well it is known, trials.

One HTML file that contains its pictures and loads nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path

from sfihilo.experiment.files import replacing, require_replaceable
from sfihilo.experiment.insight import (
    WINDOW,
    BestRange,
    Drive,
    answer_hits,
    best_ranges,
    drives,
    outcome_errors,
    ranked,
)
from sfihilo.experiment.log.errors import BusyError
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.output import figure
from sfihilo.experiment.output.advice import Advice
from sfihilo.experiment.output.text import counted
from sfihilo.experiment.output.text import hypertext as escape
from sfihilo.experiment.session.record import Record
from sfihilo.experiment.session.rounds import used_answers
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.session.trial import TAKEN_OUT, Trial
from sfihilo.learner import State

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933}
body{max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.22rem .8rem .22rem 0;border-bottom:1px solid #e4e7eb}
td.n,th.n{text-align:right}img{max-width:100%}p.quiet,.quiet{color:#616e7c}
.warn{background:#fff4e5;border-left:4px solid #f0932b;padding:.5rem .8rem}
details summary{cursor:pointer}code{font-size:.85em;word-break:break-all}
"""
ANSWERS = {"new": "this one", "previous": "the one before", "same": "same", None: "cannot say"}
FEW_COMPARISONS = 10
MARK = b"<!doctype html><html lang=en><meta charset=utf-8><title>Session "  # how a report begins
TRIES = 10


def write_report(session: Session, path: str | Path) -> Path:
    """Write the report of a session to an HTML file; replaces nothing but an earlier report."""
    path = Path(path)
    require_replaceable(path, MARK)  # before the work, not only after it
    text = report(session)
    with replacing(path, MARK) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def report(session: Session) -> str:
    """The report of a session as HTML, of one moment of its record."""
    for _ in range(TRIES):
        record, state, last = session.record, session.state, session.events[-1]
        page = _page(session, record, state, last)
        if session.record.number == record.number == last.number:
            return page
    raise BusyError(f"session {session.id}: another writer changes it all the time; try again")


def _page(session: Session, record: Record, state: State, last: Event) -> str:
    parts = [f"<h1>Session {escape(record.session)}</h1>", _summary(record)]
    compared = len(used_answers(record))
    if record.anchor_trial is None or compared == 0:
        parts.append("<p>Nothing was compared yet: there is nothing to explain.</p>")
    else:
        advice = session.recommend()
        found, ranges = drives(state, record.space), best_ranges(state, record.space)
        if compared < FEW_COMPARISONS:
            parts.append(
                f"<p class=warn>Only {counted(compared, 'comparison')} so far: read the "
                "intervals, not the middle.</p>"
            )
        parts += [
            "<h2>What to set</h2>",
            _advice(record, advice, ranges),
            _image(figure.policies(record, advice, ranges), "policies tried and recommended"),
            "<h2>Why: what drives this person's preference</h2>",
            _drives(found),
            _image(figure.reward(record, found), "learned reward along each outcome"),
            "<h2>How well it is known</h2>",
            _known(record),
            _image(figure.learning(record), "predictions before each trial"),
        ]
    parts += ["<h2>Every trial</h2>", _trials(record), _notes(record), _evidence(record, last)]
    return (
        f"{MARK.decode()}{escape(record.session)}</title>"
        f"<style>{STYLE}</style>\n" + "\n".join(parts) + "\n</html>\n"
    )


def _summary(record: Record) -> str:
    ended = [trial for trial in record.trials if trial.status == "complete"]
    answers = sum(trial.answered and trial.ending not in TAKEN_OUT for trial in record.trials)
    return (
        f"<p class=quiet>Participant {escape(record.participant)} · opened "
        f"{escape(record.opened[:16].replace('T', ' '))} UTC · {record.status} · "
        f"{counted(len(ended), 'complete trial')} · {counted(answers, 'answer')}, "
        f"{len(used_answers(record))} learned from · {counted(record.refused, 'refused input')}</p>"
    )


def _advice(record: Record, advice: Advice, ranges: Sequence[BestRange]) -> str:
    likely = {best.name: f"{_number(best.low)} to {_number(best.high)}" for best in ranges}
    rows = [
        [name, _number(value), likely.get(name, "fixed"), knob.unit,
         f"{_number(knob.low)} to {_number(knob.high)}"]
        for name, value in advice.policy.items()
        for knob in [record.space.policy[name]]
    ]  # fmt: skip
    expected = [
        [name, _number(interval.value), f"{_number(interval.low)} to {_number(interval.high)}",
         record.space.outcomes[name].unit]
        for name, interval in advice.outcomes.items()
    ]  # fmt: skip
    warnings = []
    if advice.extrapolates:
        warnings.append("The model knows less about this policy than about any that was tried.")
    if not advice.one_step:
        warnings.append("It is more than one allowed step from the last policy: approach it.")
    return (
        _table(["parameter", "recommended", "best value, 90 %", "unit", "allowed"], rows, {1, 2})
        + "<p>What it is expected to bring:</p>"
        + _table(["outcome", "predicted", "95 % interval", "unit"], expected, {1, 2})
        + "".join(f"<p class=warn>{escape(text)}</p>" for text in warnings)
    )


def _drives(found: Sequence[Drive]) -> str:
    rows = [
        [
            drive.name,
            f"{drive.share[0]:.0%}",
            f"{drive.share[1]:.0%} to {drive.share[2]:.0%}",
            _direction(drive),
            f"{drive.effect[0]:+.2f}",
            f"{drive.effect[1]:+.2f} to {drive.effect[2]:+.2f}",
        ]
        for drive in ranked(found)
    ]
    return (
        "<p>Share: how much of the reward's movement over reachable outcomes comes from each one. "
        "Effect: change of the reward from its low to its high end, in standard deviations of the "
        "reward over what this device can reach. Intervals hold 90 %. Shaded: the same.</p>"
        + _table(["outcome", "share", "90 %", "direction", "effect", "90 %"], rows, {1, 2, 4, 5})
    )


def _direction(drive: Drive) -> str:
    _, low, high = drive.effect
    if low > 0:
        return "more is better"
    return "less is better" if high < 0 else "not clear"


def _known(record: Record) -> str:
    _, right = answer_hits(record)
    _, errors = outcome_errors(record)
    recent, last = right[-WINDOW:], errors[-WINDOW:]
    if not len(recent) or not len(last):
        return "<p>Too few trials to say.</p>"
    return (
        "<p>Each answer and outcome was predicted before it came. Of the last "
        f"{counted(len(recent), 'answer')} with a prediction, {int(recent.sum())} came as "
        f"predicted; over the last {counted(len(last), 'trial')}, the outcomes were off by "
        f"{last.mean():.1%} of their range. Queries are chosen where the answer is "
        "uncertain, so this understates what is known elsewhere.</p>"
    )


def _trials(record: Record) -> str:
    space = record.space
    headings = ["trial", "source", "status", *space.policy, *space.outcomes, "with", "preferred"]
    rows = [_trial_row(record, trial) for trial in record.trials]
    numeric = set(range(3, 3 + len(space.policy) + len(space.outcomes)))
    return (
        f"<details open><summary>{counted(len(rows), 'trial')}</summary>"
        f"{_table(headings, rows, numeric)}</details>"
    )


def _trial_row(record: Record, trial: Trial) -> list[str]:
    values = trial.outcome or {}
    return [
        str(trial.number),
        trial.source,
        trial.status,
        *(_number(value) for value in trial.policy.values()),
        *(_number(values.get(name)) for name in record.space.outcomes),
        str(trial.compare_with) if trial.asks_choice else "",
        ANSWERS[trial.choice] if trial.answered else "",
    ]


def _notes(record: Record) -> str:
    if not record.notes:
        return ""
    rows = [[wall[:16].replace("T", " "), actor or "", text] for wall, actor, text in record.notes]
    return "<h2>Notes</h2>" + _table(["UTC", "who", "note"], rows, set())


def _evidence(record: Record, last: Event) -> str:
    return (
        f"<p class=quiet>From event {last.number} of this session (event {last.seq} of the file), "
        f"hash <code>{last.hash}</code>; seed {escape(record.seed)}.</p>"
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int]) -> str:
    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if place in numeric else ''}>{escape(value)}</{tag}>"
            for place, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', headings)}</tr>{body}</table>"


def _image(png: bytes, about: str) -> str:
    data = base64.b64encode(png).decode("ascii")
    return f'<p><img alt="{escape(about)}" src="data:image/png;base64,{data}"></p>'


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
