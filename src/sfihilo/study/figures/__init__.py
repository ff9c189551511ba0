"""Every figure of the study: one function per figure, from stored results only."""

from __future__ import annotations

from pathlib import Path

from sfihilo.study.analysis.measures import Results
from sfihilo.study.figures import style
from sfihilo.study.figures.extrapolation import log_extrapolation
from sfihilo.study.figures.preset_changes import preset_conditions
from sfihilo.study.figures.presets import preset_curves, reliability
from sfihilo.study.figures.results import final_results, policy_reward_gap
from sfihilo.study.figures.user_diagnostics import truth_behavior

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


def draw_all(results: Results, out: Path) -> list[Path]:
    """Writes all figures as PNG and PDF; what was not run is marked in them."""
    written = []
    for preset in results.presets:
        for name, figure in BY_PRESET.items():
            written += style.write(figure(results, preset), out, f"{name}-{preset}")
    for name, draw in OF_ALL.items():
        written += style.write(draw(results), out, name)
    written += style.write(truth_behavior(), out, "truth_behavior")
    return written
