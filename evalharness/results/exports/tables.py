"""The two tables of a run as CSV or parquet files of their own."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from evalharness.base.text import inert
from evalharness.results.tables import data_frames

TABLES = ("episodes", "turns")


def cell(value: Any) -> Any:
    """Missing is empty, lists are JSON, text that a spreadsheet would take for a formula gets an apostrophe."""
    import pandas as pd

    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return json.dumps(value)
    if value is None or value is pd.NA:
        return ""
    return inert(value)


def write_csv(run: Path, folder: Path) -> list[Path]:
    paths = []
    for name, frame in zip(TABLES, data_frames(run), strict=True):
        path = folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(frame.columns)
            writer.writerows(
                [cell(value) for value in row] for row in frame.itertuples(index=False, name=None)
            )
        paths.append(path)
    return paths


def write_parquet(run: Path, folder: Path) -> list[Path]:
    paths = []
    for name, frame in zip(TABLES, data_frames(run), strict=True):
        path = folder / f"{name}.parquet"
        frame.to_parquet(path, index=False)
        paths.append(path)
    return paths
