"""Write the tables `episodes` and `turns` of several runs as CSV or parquet files."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalharness.base.text import inert
from evalharness.results.tables import data_frames

TABLES = ("episodes", "turns")
FORMATS = ("csv", "parquet")


def cell(value: Any) -> Any:
    """Return a value for CSV: missing values are empty, lists are JSON, and formulas of spreadsheets are disabled."""
    import pandas as pd

    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return json.dumps(value)
    if value is None or value is pd.NA:
        return ""
    return inert(value)


def write(runs: Sequence[Path], folder: Path, form: str) -> list[Path]:
    """Write the tables `episodes` and `turns` of all `runs` in the format `form`: `csv` or `parquet`."""
    paths = [folder / f"{name}.{form}" for name in TABLES]
    for path, frame in zip(paths, data_frames(*runs), strict=True):
        if form == "parquet":
            frame.to_parquet(path, index=False)
            continue
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(frame.columns)
            writer.writerows(
                [cell(value) for value in row] for row in frame.itertuples(index=False, name=None)
            )
    return paths
