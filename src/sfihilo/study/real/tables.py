"""The stored tables of predictions for real people."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

KEYS = ["set", "people"]


def read(path: Path) -> pd.DataFrame:
    """A stored table; sets and people are texts, whatever they are called."""
    texts = dict.fromkeys((*KEYS, "person"), str)
    try:
        table = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])
        if not {*KEYS, "answers", "model"} <= set(table.columns):
            raise ValueError(f"columns {', '.join(table.columns)}")
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"{path}: expected a table of an earlier run, got another or a damaged one ({error}); "
            "remove it, or choose another folder with --out"
        ) from error
    return table
