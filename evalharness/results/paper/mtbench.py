"""MT-bench: two-turn questions, graded from 1 to 10 by a judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalharness.base.reading import read_json
from evalharness.records.files import MANIFEST, SUMMARY
from evalharness.results.paper.exhibit import Exhibit, Filled
from evalharness.results.paper.family_table import DIFFERS
from evalharness.results.paper.given import Given
from evalharness.results.paper.published import load_table
from evalharness.results.paper.table import Cell, Column, Row, Table

TITLE = "MT-bench"
KIND = "mtbench"
_JUDGE = "GPT-4"


def is_folder(path: Path) -> bool:
    """Whether `evalharness mtbench` wrote it."""
    try:
        return bool(read_json(path / MANIFEST)["identity"]["kind"] == KIND)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _row(path: Path) -> Row:
    """Raises OSError, ValueError, KeyError, TypeError where the folder is not as written."""
    summary, identity = read_json(path / SUMMARY), read_json(path / MANIFEST)["identity"]
    about = [
        f"judge {summary['judge']}",
        f"questions {summary['questions']['name']}",
        _prompt(identity["prompt"]),
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


def _prompt(facts: dict[str, Any]) -> str:
    if facts.get("layout") == "fastchat":
        return f"FastChat's judge prompts ({str(facts['sha256'])[:12]})"
    return "the harness's own judge prompt"


def _fill(given: Given) -> Filled:
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
            rows.append(_row(path))
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            problems.append(
                f"{path}: its summary is not readable; run its `evalharness mtbench` command again"
            )
    notes = [
        f"published: judge {_JUDGE}, MT-bench's 80 questions; a score is comparable with the same questions, judge and "
        "prompt alone",
        *(
            [f"{DIFFERS} not graded by FastChat's prompts (--judge-prompts FILE)"]
            if any(r.marks for r in rows)
            else []
        ),
        *(f"{row.name}: {'; '.join(row.about)}" for row in rows if row.ours),
    ]
    return Filled((Table(TITLE, columns, tuple(rows), "1 to 10", tuple(notes)),), tuple(problems))


EXHIBIT = Exhibit(
    "mtbench",
    TITLE,
    "two-turn questions answered by methods with and without general data, graded by GPT-4",
    "evalharness mtbench --model CKPT --judge MODEL --questions question.jsonl --judge-prompts judge_prompts.jsonl",
    lambda given: [path.name for path in given.mtbench],
    _fill,
)
