"""Exhibits of model judges: agreement of GPT-4 and a person on which turns are wrong, and MT-bench scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalharness import stats
from evalharness.base.reading import read_json
from evalharness.paper.exhibit import Exhibit, Filled, Given, read_each
from evalharness.records.data_set import name_judged_folder
from evalharness.records.files import MANIFEST, SUMMARY
from evalharness.results.leaderboard.marked_rows import DIFFERS
from evalharness.results.published import load_table
from evalharness.results.tabular.table import Cell, Column, Row, Table

_AGREEMENT = "judge: right and wrong turns by a person and by GPT-4"
_COUNTS = ("right_right", "right_wrong", "wrong_right", "wrong_wrong")
"""Names of the four counts of turns: the first rater's verdict, then the second rater's."""
_FIGURES = ("accuracy", "kappa")
_NOT_BALANCED = (
    f"{DIFFERS} no kappa to compare with the published one, of as many turns called right as wrong by the judge "
    "(judge label --balanced)"
)


def _make_agreement_row(pair: Mapping[str, Any]) -> Row:
    cells = {key: Cell(pair[key]) for key in _COUNTS}
    for name in _FIGURES:
        ends = (pair[f"{name}_low"], pair[f"{name}_high"])
        cells[name] = Cell(pair[name], None if None in ends else ends)
    right, wrong = (
        sum(pair[f"{first}_{word}"] for first in ("right", "wrong")) for word in ("right", "wrong")
    )
    if abs(right - wrong) > 1:
        cells["kappa"] = replace(cells["kappa"], marks=DIFFERS)
    return Row(f"{pair['first']} x {pair['second']}", cells, source="data")


def _make_published_row() -> Row:
    counts = {
        f"{row.names['human']}_{word}": row.numbers[f"gpt4_{word}"].value
        for row in load_table("judge_agreement")
        for word in ("right", "wrong")
    }
    agreed = counts["right_right"] + counts["wrong_wrong"]
    cells = {key: Cell(value) for key, value in counts.items()}
    kappa = stats.cohen_kappa([round(counts[key]) for key in reversed(_COUNTS)])
    figures = {"accuracy": Cell(agreed / sum(counts.values())), "kappa": Cell(kappa)}
    return Row("human x GPT-4", cells | figures)


def _find_judged(given: Given) -> dict[Path, str]:
    """Map each given folder that has judgements or labels to its name."""
    named = {run.folder: entry.label for entry in given.entries for run in entry.runs}
    named |= {name_judged_folder(path): path.name for path in given.data}
    return {
        folder: name
        for folder, name in named.items()
        if (folder / "judgements").is_dir() or (folder / "labels").is_dir()
    }


def _fill_agreement(given: Given) -> Filled:
    columns = (
        *(Column(key, f"2nd {key[6:]}", f"1st {key[:5]}", 0) for key in _COUNTS),
        *(Column(name, name, decimals=2) for name in _FIGURES),
    )
    rows, problems = [_make_published_row()], list(given.left_out)
    measure = given.measured.agreement
    for _, raters in read_each(_find_judged(given) if measure else (), measure, problems):
        rows += [_make_agreement_row(pair) for pair in raters]
    notes = (
        "counts of turns: the first rater's word, then the second's; intervals count turns as independent",
        *([_NOT_BALANCED] if any(row.cells["kappa"].marks for row in rows) else []),
    )
    missing = [JUDGE.command] if JUDGE.takes(given) and len(rows) == 1 else []
    return Filled((Table(_AGREEMENT, columns, tuple(rows), "raters", notes),), (*problems, *missing))


JUDGE = Exhibit(
    "judge",
    _AGREEMENT,
    "turns that a person and GPT-4 call right or wrong",
    "evalharness judge RUN|DATA --judge MODEL, then evalharness judge label RUN|DATA --rater NAME",
    lambda given: list(dict.fromkeys(_find_judged(given).values())),
    _fill_agreement,
)


_MTBENCH = "MT-bench"
_KIND = "mtbench"
_JUDGE = "gpt-4o-2024-05-13"
_NOT_AS_WRITTEN = (ValueError, KeyError, TypeError, IndexError, AttributeError)
"""Errors of reading JSON that does not have the expected form."""


def is_mtbench_folder(path: Path) -> bool:
    """Return whether `evalharness judge mtbench` wrote the folder."""
    try:
        return bool(read_json(path / MANIFEST)["identity"]["kind"] == _KIND)
    except (OSError, *_NOT_AS_WRITTEN):
        return False


def _make_mtbench_row(path: Path) -> Row:
    """Return the row of a folder. Raises OSError or one of `_NOT_AS_WRITTEN` if the folder is damaged."""
    summary, identity = read_json(path / SUMMARY), read_json(path / MANIFEST)["identity"]
    about = [
        f"judge {summary['judge']}",
        f"questions {summary['questions']['name']}",
        _describe_prompt(identity["prompt"]),
    ]
    if summary["left"]:
        about.append(f"{int(summary['left'])} answers are left to grade")
    cells = {}
    for score in summary["scores"][:3]:
        ends = score["interval"]
        cells[str(score["name"])] = Cell(
            None if score["mean"] is None else float(score["mean"]),
            None if ends is None else (float(ends[0]), float(ends[1])),
        )
    own = identity["prompt"].get("layout") != "fastchat"
    return Row(
        str(summary["model"]),
        cells,
        source="run",
        marks=DIFFERS if own else "",
        about=tuple(about),
        folder=str(path),
    )


def _describe_prompt(facts: dict[str, Any]) -> str:
    if facts.get("layout") == "fastchat":
        return f"FastChat's judge prompts ({str(facts['sha256'])[:12]})"
    return "the harness's own judge prompt"


def _fill_mtbench(given: Given) -> Filled:
    columns = (
        Column("all", "score", decimals=2),
        Column("turn 1", "turn 1", decimals=2),
        Column("turn 2", "turn 2", decimals=2),
    )
    rows = [
        Row(row.names["method"], {"all": Cell(row.numbers["mt_bench"].value)})
        for row in load_table("mt_bench")
    ]
    problems = list(given.left_out)
    for path in given.mtbench:
        try:
            rows.append(_make_mtbench_row(path))
        except (OSError, *_NOT_AS_WRITTEN):
            problems.append(
                f"{path}: its summary is not readable; run its `evalharness judge mtbench` command again"
            )
    own = f"{DIFFERS} not graded by FastChat's prompts (--judge-prompts FILE)"
    notes = [
        f"published: judge {_JUDGE}, MT-bench's 80 questions; a score is comparable with the same questions, judge and "
        "prompt alone",
        *([own] if any(row.marks for row in rows) else []),
        *(f"{row.name}: {'; '.join(row.about)}" for row in rows if row.ours),
    ]
    return Filled((Table(_MTBENCH, columns, tuple(rows), "1 to 10", tuple(notes)),), tuple(problems))


MTBENCH = Exhibit(
    "mtbench",
    _MTBENCH,
    "two-turn questions answered by methods with and without general data, graded by gpt-4o-2024-05-13",
    "evalharness judge mtbench --model CKPT --judge MODEL --questions question.jsonl "
    "--judge-prompts judge_prompts.jsonl",
    lambda given: [path.name for path in given.mtbench],
    _fill_mtbench,
)
