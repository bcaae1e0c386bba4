"""The audit of a suite: can its tasks be solved in time, and do labels and simulators agree?

    python benchmarks/audit.py [LIST] [--suite SUITE] [--suite-seed N] [--max-turns N] [--data DIR] [-o DIR]
        [--csv FILE] [--json FILE]

Replays every reference plan of every task through the ordinary engine, and a uniformly random policy beside it. The
first gives the ceiling and the disagreements, the second the floor: the tables of results/reference. The same command
continues. `--csv` replaces the rows of these tasks and this turn limit, and keeps all others of the file.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import stdev
from typing import Any

from evalharness.config import AgentConfig, make_config
from evalharness.envs import specs
from evalharness.envs.base import MAX_TURNS, Suite
from evalharness.records.episode import Episode
from evalharness.results.tables import read_sorted_episodes
from evalharness.results.task_range import TaskRange
from evalharness.runs.evaluation import Watch, evaluate, watch_nothing
from evalharness.runs.live import watch as show

PLANS = 3
"""Reference plans that are replayed of a task at most."""
_LONGEST_PLAN = 300
"""Turns. Longer plans would say nothing about a benchmark of 30."""


def _disagreement(replay: Episode) -> str | None:
    """Between the simulator and the labels, about one replayed plan."""
    plan = replay.plan or "a plan"
    if replay.solved and not replay.success:
        completed = {index for turn in replay.turns for index in turn.subgoals_completed}
        missing = ", ".join(str(index) for index in range(len(replay.subgoals)) if index not in completed)
        which = f", subgoal {missing} never completed" if missing else ""
        return f"{plan}: simulator solved, label not (progress {replay.progress:.2f}{which})"
    if replay.success and not replay.solved:
        return f"{plan}: label solved, simulator not"
    return None


def range_of(
    replays: Sequence[Episode], attempts: Sequence[Episode], max_turns: int = MAX_TURNS
) -> TaskRange:
    """The range of one task from its replayed plans and its random attempts, under a turn limit."""
    plans = [replay for replay in replays if replay.turns]
    lengths = [len(replay.turns) for replay in plans if replay.success]
    reasons = [reason for replay in plans if (reason := _disagreement(replay))]
    n = len(attempts)
    first = replays[0]
    return TaskRange(
        task_id=first.task_id,
        task_hash=first.task_hash,
        difficulty=first.difficulty,
        plan_turns=min(lengths, default=None),
        ceiling_success=float(any(length <= max_turns for length in lengths)),
        ceiling_progress=max(
            (turn.progress for plan in plans for turn in plan.turns[:max_turns]), default=0.0
        ),
        floor_success=sum(e.success for e in attempts) / n if n else None,
        floor_progress=sum(e.progress for e in attempts) / n if n else None,
        floor_samples=n,
        label_agrees=not reasons,
        why="; ".join(dict.fromkeys(reasons)),
        labels=first.labels,
        floor_progress_sd=stdev(e.progress for e in attempts) if n > 1 else None,
        max_turns=max_turns,
    )


def _by_task(folder: Path) -> Iterable[tuple[str, list[Episode]]]:
    for task_id, episodes in groupby(read_sorted_episodes(folder), key=lambda e: e.task_id):
        yield task_id, list(episodes)


def audit(
    families: str,
    suite: Suite,
    *,
    folder: Path,
    data: Path | None,
    suite_seed: int = 0,
    floor_samples: int = 5,
    max_turns: int | None = None,
    watch: Watch = watch_nothing,
) -> list[TaskRange]:
    """Audit `families` (as `--tasks` names them) and return a row a task, in order.

    `folder` gets the two runs it is made of, and continues them when it holds them already. A task whose
    episodes could not be played is not in the result; the runs' errors.jsonl say why.
    """
    common: dict[str, Any] = {"tasks": families, "suite": suite, "suite_seed": suite_seed}
    longest = {"samples": PLANS, "max_turns": _LONGEST_PLAN}
    reference = {"model": "reference", "output": folder / "reference", **longest, **common}
    evaluate(make_config(reference), data=data, watch=watch)
    attempts: Mapping[str, list[Episode]] = {}
    if floor_samples:
        chance = {"model": "random", "output": folder / "random", "samples": floor_samples, **common}
        chance |= {"max_turns": max_turns} if max_turns else {}
        evaluate(make_config(chance), data=data, watch=watch)
        attempts = dict(_by_task(folder / "random"))
    limits = {family: AgentConfig(max_turns=max_turns).turn_limit(spec) for family, spec in specs().items()}
    return [
        range_of(replays, attempts.get(task_id, ()), limits[replays[0].family])
        for task_id, replays in _by_task(folder / "reference")
    ]


def totals(rows: Sequence[TaskRange]) -> dict[str, dict[str, Any]]:
    """Family -> number of tasks, ceilings and floors (fractions), disagreements."""
    result = {}
    for family, group in groupby(rows, key=lambda row: row.task_id.split("/")[0]):
        tasks = list(group)
        n = len(tasks)
        has_floor = all(row.floor_success is not None for row in tasks)
        result[family] = {
            "n": n,
            "solvable": sum(row.plan_turns is not None for row in tasks),
            "ceiling_success": sum(row.ceiling_success for row in tasks) / n,
            "ceiling_progress": sum(row.ceiling_progress for row in tasks) / n,
            "floor_success": sum(row.floor_success or 0.0 for row in tasks) / n if has_floor else None,
            "floor_progress": sum(row.floor_progress or 0.0 for row in tasks) / n if has_floor else None,
            "disagreements": sum(not row.label_agrees for row in tasks),
        }
    return result


def write_ranges(path: Path, rows: Iterable[TaskRange]) -> None:
    """Write or replace rows of a CSV file, sorted by task; rates have six decimals, so that the file is the same on
    every machine."""
    key = itemgetter("task_id", "task_hash", "max_turns")
    cells = [{name: _cell(value) for name, value in asdict(row).items()} for row in rows]
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            made = {key(row) for row in cells}
            cells += [row for row in csv.DictReader(file) if key(row) not in made]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(TaskRange)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(cells, key=itemgetter("task_id", "max_turns", "task_hash")))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "selection", metavar="LIST", nargs="?", default="all", help="tasks, as in `run --tasks`"
    )
    parser.add_argument("--suite", default="open")
    parser.add_argument("--suite-seed", type=int, default=0)
    parser.add_argument(
        "--floor-samples", type=int, default=5, help="random attempts at each task; 0: no floor"
    )
    parser.add_argument(
        "--max-turns", type=int, help="turn limit of floor and ceiling (default: the family's)"
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("results/audit"))
    parser.add_argument("--csv", type=Path, help="a row a task")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = audit(
        args.selection, args.suite, folder=args.output, data=args.data, suite_seed=args.suite_seed,
        floor_samples=args.floor_samples, max_turns=args.max_turns, watch=show,
    )  # fmt: skip
    for row in rows:
        if row.why or not row.ceiling_success:
            print(
                f"{row.task_id}: {row.plan_turns or 'no plan of any number of'} turns; {row.why or 'labels agree'}"
            )
    for family, counts in totals(rows).items():
        print(
            family,
            *(f"{name} {value if value is None else round(value, 3)}" for name, value in counts.items()),
        )
    if args.csv:
        write_ranges(args.csv, rows)
    if args.json:
        result = {"suite": args.suite, "families": totals(rows), "tasks": [asdict(row) for row in rows]}
        args.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
