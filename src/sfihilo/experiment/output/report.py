"""The report of a session: what to set, what drives the preference, how well it is known, trials.

One HTML file that contains its pictures and loads nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
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
from sfihilo.experiment.log.event import Event
from sfihilo.experiment.output import figure
from sfihilo.experiment.output.advice import Advice, preference_rows, reward_words
from sfihilo.experiment.output.digits import percent, physical, policy_words
from sfihilo.experiment.output.text import counted
from sfihilo.experiment.output.text import hypertext as escape
from sfihilo.experiment.record.answers import offered, strength_word
from sfihilo.experiment.record.protocol import Veto
from sfihilo.experiment.record.record import Record
from sfihilo.experiment.record.trial import TAKEN_OUT, Trial
from sfihilo.experiment.session.reading import Reading
from sfihilo.experiment.session.rounds import used_answers
from sfihilo.experiment.session.session import Session
from sfihilo.experiment.space.parameter import Outcome, Parameter
from sfihilo.recommendation import NothingLearnedError
from sfihilo.state import State

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933}
body{max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem}
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:.22rem .8rem .22rem 0;border-bottom:1px solid #e4e7eb}
td.n,th.n{text-align:right}img{max-width:100%}p.quiet,.quiet{color:#616e7c}
.warn{background:#fff4e5;border-left:4px solid #f0932b;padding:.5rem .8rem}
p.verdict{font-size:1.15rem;font-weight:600}
details summary{cursor:pointer}code{font-size:.85em;word-break:break-all}
"""
ANSWERS = {"new": "this one", "previous": "the one before", "same": "same", None: "cannot say"}
MARK = b"<!doctype html><html lang=en><meta charset=utf-8><title>Session "  # how a report begins


def write_report(
    session: Session,
    path: str | Path,
    compare_with: Mapping[str, Mapping[str, float]] | None = None,
) -> Path:
    """Write the report of a session to an HTML file; replaces nothing but an earlier report."""
    path = Path(path)
    require_replaceable(path, MARK)  # before the work, not only after it
    text = report(session, compare_with)
    with replacing(path, MARK) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def report(session: Session, compare_with: Mapping[str, Mapping[str, float]] | None = None) -> str:
    """The report of a session as HTML, of one moment of its record.

    The advice is also compared with the named policies of `compare_with`.
    """
    reading = session.read()
    advice = _advice_or_reason(reading, compare_with)
    return _page(reading.record, reading.state, reading.events[-1], advice)


def _advice_or_reason(
    reading: Reading, compare_with: Mapping[str, Mapping[str, float]] | None
) -> Advice | str:
    """The advice, or why there is none: a report is written all the same."""
    try:
        return reading.recommend(compare_with=compare_with)
    except NothingLearnedError as error:
        return f"{error}, and nothing to explain"
    except ValueError as error:
        if compare_with:
            reading.recommend()  # raises too, unless what is compared with is wrong
            raise
        return str(error)


def _page(record: Record, state: State, last: Event, advice: Advice | str) -> str:
    parts = [f"<h1>Session {escape(record.session)}</h1>", _summary(record)]
    if isinstance(advice, str):
        sentence = advice[:1].upper() + advice[1:]
        parts.append(f"<p class=warn>{escape(sentence)}.</p>")
    else:
        found, ranges = drives(state, record.space), best_ranges(state, record.space)
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
    parts.append(_vetoes(record))
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
        f"{len(used_answers(record))} learned from · {counted(record.refused, 'refused input')} · "
        f"goal: {escape(record.goal)} · {offered(record.grades)} answers offered"
        f"{_recalled(record)}</p>"
    )


def _recalled(record: Record) -> str:
    return f" · compared with one of the last {record.recall} walks" if record.recall > 1 else ""


def _advice(record: Record, advice: Advice, ranges: Sequence[BestRange]) -> str:
    space = record.space
    likely = {best.name: _range(best.low, best.high, space.policy[best.name]) for best in ranges}
    rows = [
        [name, physical(value, knob), likely.get(name, "fixed"), knob.unit,
         _range(knob.low, knob.high, knob)]
        for name, value in advice.policy.items()
        for knob in [space.policy[name]]
    ]  # fmt: skip
    expected = [
        [name, physical(interval.value, outcome), _range(interval.low, interval.high, outcome),
         outcome.unit]
        for name, interval in advice.outcomes.items()
        for outcome in [space.outcomes[name]]
    ]  # fmt: skip
    preferred = [
        [name, words, percent(probability)]
        for name, words, probability in preference_rows(record, advice)
    ]
    return (
        f"<p class=verdict>{escape(advice.verdict)}</p>"
        + "".join(f"<p class=warn>{escape(text)}</p>" for text in advice.remarks)
        + _table(["parameter", "recommended", "best value, 90 %", "unit", "allowed"], rows, {1, 2})
        + "<p>Best value: where the best setting lies under 90 % of the rewards that the answers "
        "allow. What is recommended is the best on average over them, so that it may lie outside "
        "while little is known.</p>"
        + "<p>The probability that this person prefers it, if asked right after both:</p>"
        + _table(["compared with", "settings", "preferred"], preferred, {2})
        + "<p>What it is expected to bring:</p>"
        + _table(["outcome", "predicted", "95 % interval", "unit"], expected, {1, 2})
        + f"<p>{escape(reward_words(advice))}</p>"
    )


def _range(low: float, high: float, quantity: Parameter | Outcome) -> str:
    return f"{physical(low, quantity)} to {physical(high, quantity)}"


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
    headings = ["trial", "source", "status", *space.policy, *space.outcomes, "with", "preferred",
                "goal", "reason"]  # fmt: skip
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
        *(physical(value, record.space.policy[name]) for name, value in trial.policy.items()),
        *(physical(values.get(name), outcome) for name, outcome in record.space.outcomes.items()),
        str(trial.compare_with) if trial.asks_choice and trial.compare_with else "",
        _answer(record, trial) if trial.answered else "",
        trial.goal,
        trial.why,
    ]


def _answer(record: Record, trial: Trial) -> str:
    word = strength_word(trial.strength, record.grades)
    named = trial.choice == "previous" and trial.ago is not None
    preferred = f"trial {trial.compare_with}" if named else ANSWERS[trial.choice]
    return preferred + ("" if word is None else f", {word}")


def _vetoes(record: Record) -> str:
    """Every policy that was refused, and every one that caused pain, with the reason."""
    if not record.vetoes:
        return ""
    rows = [
        [
            str(veto.trial),
            policy_words(record.space, record.trial(veto.trial).policy),
            "pain" if veto.pain else "other",
            veto.why,
            _until(record, veto),
        ]
        for veto in record.vetoes
    ]
    return "<h2>Refused settings</h2>" + _table(
        ["trial", "settings", "because of", "reason", "avoided"], rows, set()
    )


def _until(record: Record, veto: Veto) -> str:
    """How long settings near a veto are avoided."""
    if veto.lifted:
        return "lifted" + (f": {veto.lifted_why}" if veto.lifted_why else "")
    if veto.pain:
        return "until it is lifted"
    return f"for {counted(record.protocol.veto_rounds, 'round')}"


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
