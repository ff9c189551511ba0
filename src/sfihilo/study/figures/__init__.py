"""Every figure of the study: one function a figure, from stored results only."""

from __future__ import annotations

from pathlib import Path

from sfihilo.study.analysis.measures import Results
from sfihilo.study.analysis.summary import write_tables
from sfihilo.study.figures import style
from sfihilo.study.figures.elsewhere import preset_conditions
from sfihilo.study.figures.extrapolation import log_extrapolation
from sfihilo.study.figures.policy_gap import policy_reward_gap
from sfihilo.study.figures.presets import preset_curves, reliability
from sfihilo.study.figures.results import final_results
from sfihilo.study.figures.users import truth_behavior
from sfihilo.study.run.store import read_results

BY_PRESET = {
    "final_results": final_results,
    "log_extrapolation": log_extrapolation,
    "policy_reward_gap": policy_reward_gap,
}
OF_ALL = {
    "preset_curves": preset_curves,
    "preset_conditions": preset_conditions,
    "reliability": reliability,
}


def make_all(results: Path, out: Path) -> list[Path]:
    """Draw all that the results allow, as PNG and PDF, and write the summary tables."""
    table = Results.of(read_results(results))
    written = write_tables(results)
    for preset in table.presets:
        for name, figure in BY_PRESET.items():
            written += style.write(figure(table, preset), out, f"{name}-{preset}")
    for name, draw in OF_ALL.items():
        written += style.write(draw(table), out, name)
    written += style.write(truth_behavior(), out, "truth_behavior")
    return written
