"""Tables, figure and page of the predictions for real people.

<out>/units/*.parquet     predictions, one file per (set, people, answers); not committed
<out>/people.csv.gz       one row per person: log loss and accuracy of each model
<out>/summary.csv         one row per (set, people, answers, model), with the commit that wrote it
<out>/real_people.png     figure
"""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd

from sfihilo import provenance
from sfihilo.study.figures import style
from sfihilo.study.figures.real_people import real_people
from sfihilo.study.pages.real_people_page import write_page
from sfihilo.study.real.person_measures import by_person, summary
from sfihilo.study.real.predictors import MODELS, WORDS
from sfihilo.study.real.tables import KEYS, read
from sfihilo.study.run.result_files import write_atomically

_SHOWN = ["log_loss", "log_loss_gap", "log_loss_gap_error", "accuracy", "ece", "slope"]


def update(predictions: pd.DataFrame, out: Path) -> pd.DataFrame:
    """Write the tables with these predictions in the place of older ones; returns their summary."""
    out.mkdir(parents=True, exist_ok=True)
    table = summary(predictions).assign(commit=provenance.commit())
    tables = {out / "summary.csv": table, out / "people.csv.gz": by_person(predictions)}
    contents = {path: _replaced(fresh, path) for path, fresh in tables.items()}
    for path, content in contents.items():
        write_atomically(path, content)
    return table


def _replaced(table: pd.DataFrame, path: Path) -> bytes:
    """The file's content with all rows of these sets and people replaced."""
    if path.exists():
        before = read(path)
        fresh = set(zip(*(table[key] for key in KEYS), strict=True))
        rows = zip(*(before[key] for key in KEYS), strict=True)
        kept = before[[row not in fresh for row in rows]]
        table = pd.concat([kept, table], ignore_index=True)
    order = table.sort_values([*KEYS, "answers"], kind="stable")
    # Without its time of writing, the same table is the same bytes.
    packed = {"method": "gzip", "mtime": 0, "filename": path.name}
    options = packed if path.suffix == ".gz" else None
    content = io.BytesIO()
    order.to_csv(content, index=False, float_format="%.5g", compression=options)
    return content.getvalue()


def write(out: Path, page: Path | None) -> list[Path]:
    """Draw the figure and write the page from the stored tables."""
    table = read(out / "summary.csv")
    written = [out / "summary.csv", out / "people.csv.gz"]
    written.append(style.write_png(real_people(table), out, "real_people", dots=200))
    if page is not None:
        written.append(write_page(table, out, page))
    return written


def as_text(table: pd.DataFrame) -> str:
    """The summary for a terminal."""
    shown = table[table["model"].isin(MODELS)]
    names = shown["model"].map(WORDS).str.replace("`", "")
    columns = ["set", "people", "answers", "persons"]
    text = shown[columns].assign(model=names).join(shown[[*_SHOWN, "worse_than_coin"]].round(3))
    return str(text.to_string(index=False))
