"""The judge's table: how far a model and a person agree on which turns are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalharness import stats
from evalharness.records.data_set import judged_folder
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.given import Given, each_read
from evalharness.results.paper.published import load_table
from evalharness.results.paper.table import Cell, Column, Row, Table

TITLE = "judge: right and wrong turns by a person and by GPT-4"
_COUNTS = ("right_right", "right_wrong", "wrong_right", "wrong_wrong")
"""The first rater's word, then the second's."""
_FIGURES = ("accuracy", "kappa")


def _row(found: Mapping[str, Any], *, published: bool = False) -> Row:
    cells = {key: Cell(found[key]) for key in _COUNTS}
    for name in _FIGURES:
        ends = (found[f"{name}_low"], found[f"{name}_high"])
        cells[name] = Cell(found[name], None if None in ends else ends)
    source = "published" if published else "data"
    return Row(f"{found['first']} x {found['second']}", cells, source=source)  # type: ignore[arg-type]


def _published() -> Row:
    counts = {
        f"{row.names['human']}_{said}": row.numbers[f"gpt4_{said}"].value
        for row in load_table("judge_agreement")
        for said in ("right", "wrong")
    }
    agreed = counts["right_right"] + counts["wrong_wrong"]
    cells = {key: Cell(value) for key, value in counts.items()}
    wrong_wrong, wrong_right, right_wrong, right_right = (round(counts[key]) for key in reversed(_COUNTS))
    kappa = stats.cohen_kappa((wrong_wrong, wrong_right, right_wrong, right_right))
    figures = {"accuracy": Cell(agreed / sum(counts.values())), "kappa": Cell(kappa)}
    return Row("human x GPT-4", cells | figures)


def _judged(given: Given) -> dict[Path, str]:
    """Folder in which raters were -> what it is called."""
    named = {run.folder: entry.label for entry in given.entries for run in entry.runs}
    named |= {judged_folder(path): path.name for path in given.data}
    return {
        folder: name
        for folder, name in named.items()
        if (folder / "judgements").is_dir() or (folder / "labels").is_dir()
    }


def _fill(given: Given) -> Filled:
    columns = (
        *(Column(key, f"2nd {key[6:]}", f"1st {key[:5]}", 0) for key in _COUNTS),
        *(Column(name, name, decimals=2) for name in _FIGURES),
    )
    rows, problems = [_published()], list(given.left_out)
    measure = given.measured.agreement
    for _, raters in each_read(_judged(given) if measure else (), measure, problems):
        rows += [_row(found) for found in raters]
    notes = (
        "counts of turns: the first rater's word, then the second's; intervals count turns as independent",
    )
    missing = [EXHIBIT.command] if EXHIBIT.takes(given) and len(rows) == 1 else []
    return Filled((Table(TITLE, columns, tuple(rows), "raters", notes),), (*problems, *missing))


EXHIBIT = Exhibit(
    "judge",
    TITLE,
    "turns that a person and GPT-4 call right or wrong",
    "evalharness judge RUN|DATA --judge MODEL, then evalharness label RUN|DATA --rater NAME",
    lambda given: list(dict.fromkeys(_judged(given).values())),
    _fill,
)
