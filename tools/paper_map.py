"""Writes docs/paper-map.md: where each equation of the paper lives in the code.

Code lines carry the paper's LaTeX labels in comments, as in `# eq:app_forward_leverage`. This
script reads these tags; tests/test_paper_map.py holds that each equation has one home.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sfihilo"
LABELS = ROOT / "tests" / "data" / "paper_labels.txt"
PAGE = ROOT / "docs" / "paper-map.md"

TAG = re.compile(r"eq:[A-Za-z0-9_]+")

# Equations that no line of code carries, and why. A label here must not be tagged.
NO_CODE: dict[str, str] = {
    "eq:true_forward_map": "notation: names the two maps that `study.users` simulates",
    "eq:preference_likelihood": "stated again as `eq:app_inverse_pairwise_likelihood`",
    "eq:reward_posterior_predictive": "stated again as `eq:app_inverse_posterior_predictive`",
    "eq:mi_baseline": "stated again, at the forward mean, as `eq:app_active_mean_mi`",
    "eq:target_region_utility": "stated again as `eq:app_active_current_utility`",
    "eq:hypothetical_update": (
        "notation: both histories with one more row; the beliefs take it in one step by "
        "`eq:app_forward_mean_update` and `eq:app_active_importance_weights`"
    ),
    "eq:app_recency_weighted_krr": "the objective that `eq:app_weighted_krr_system` minimises",
}


@dataclass(frozen=True)
class Tag:
    """One equation label in a comment, and the function (or class, or name) that holds it."""

    label: str
    path: Path
    line: int
    home: str


@dataclass(frozen=True)
class Section:
    """A section of the paper and the equation labels in it."""

    title: str
    labels: tuple[str, ...]


def read_sections(path: Path = LABELS) -> tuple[Section, ...]:
    """The paper's sections with their labels: `## title` lines, then one label a line."""
    found: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            found.append((line.removeprefix("## "), []))
        elif line.startswith("eq:"):
            found[-1][1].append(line.strip())
    return tuple(Section(title, tuple(labels)) for title, labels in found)


def named_spans(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[int, int, str]]:
    """First line, last line and name of each function, method and module or class level name.

    A function inside a function belongs to the outer one: that is the one a reader can import.
    """
    for statement in body:
        first, last = statement.lineno, statement.end_lineno or statement.lineno
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([first, *(decorator.lineno for decorator in statement.decorator_list)])
            yield first, last, prefix + statement.name
        elif isinstance(statement, ast.ClassDef):
            yield from named_spans(statement.body, prefix + statement.name + ".")
            yield first, last, prefix + statement.name
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield first, last, prefix + statement.targets[0].id
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield first, last, prefix + statement.target.id


def home_of(line: int, spans: list[tuple[int, int, str]]) -> str:
    """The name whose lines hold this one; a comment above a definition belongs to what follows."""
    for first, last, name in spans:
        if first <= line <= last:
            return name
    following = [(first, name) for first, _, name in spans if first > line]
    return min(following)[1] if following else ""


def read_tags(package: Path = PACKAGE) -> tuple[Tag, ...]:
    """Every equation tag in the comments of the package, by file and line."""
    tags = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        spans = list(named_spans(ast.parse(text).body))
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                line = token.start[0]
                home = f"{module}:{home_of(line, spans)}"
                tags += [Tag(label, path, line, home) for label in TAG.findall(token.string)]
    return tuple(tags)


def homes(tags: Iterable[Tag]) -> dict[str, tuple[str, ...]]:
    """The places that carry each label."""
    found: dict[str, set[str]] = {}
    for tag in tags:
        found.setdefault(tag.label, set()).add(tag.home)
    return {label: tuple(sorted(places)) for label, places in found.items()}


def page(sections: Iterable[Section], places: dict[str, tuple[str, ...]]) -> str:
    """The text of docs/paper-map.md."""
    lines = [
        "# Where each equation lives",
        "",
        "<!-- Written by `make paper-map` from the `# eq:label` comments in src/. Do not edit. -->",
        "",
        "On the left the equation's LaTeX label in the paper, on the right the function that",
        "implements it, as `module:function` below `sfihilo`. Search the code for the label to",
        "find the very line.",
    ]
    for section in sections:
        lines += ["", f"## {section.title}", "", "| equation | code |", "| --- | --- |"]
        for label in section.labels:
            lines.append(f"| `{label}` | {entry(label, places)} |")
    return "\n".join(lines) + "\n"


def entry(label: str, places: dict[str, tuple[str, ...]]) -> str:
    """The right column: a link to the file, or why there is none."""
    if label in places:
        return ", ".join(
            f"[`{place}`](../src/sfihilo/{place.partition(':')[0].replace('.', '/')}.py)"
            for place in places[label]
        )
    return NO_CODE.get(label, "not yet")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read_sections(), homes(read_tags())), encoding="utf-8")


if __name__ == "__main__":
    main()
