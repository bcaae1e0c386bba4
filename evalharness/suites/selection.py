"""Which tasks a run plays: suites, families, ranges."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import get_args

from envs.base import EnvSpec, MissingDataError, Suite, Task
from evalharness.errors import UserError, nearest
from evalharness.suites.open import load_open

SUITES: tuple[Suite, ...] = get_args(Suite)


_LOG = logging.getLogger("evalharness")
"""Shown on standard error by the command line."""


def _positions(family: str, text: str, size: int) -> list[int]:
    """Positions that `text` names: `7`, `0-9`, `50-`."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (last and not last.isdecimal()):
        raise UserError(
            f"{family}:{text} is no range of tasks; write {family}:7, {family}:0-9 or {family}:50-"
        )
    low = int(first)
    high = int(last) if last else (size - 1 if dash else low)
    if low > high or high >= size:
        raise UserError(f"{family}:{text} is not within the tasks of {family}, which are 0-{size - 1}")
    return list(range(low, high + 1))


def family_tasks(spec: EnvSpec, suite: Suite, data: Path | None, suite_seed: int) -> list[Task]:
    """All tasks of a family. Raises UserError with the mending command when data is missing.

    An open suite of a seed not used before is generated, proven and frozen, which can take minutes and is told on
    standard error.
    """
    try:
        if suite == "open":
            return load_open(spec, suite_seed, _LOG.info)
        return spec.load_tasks(suite, data, suite_seed)
    except MissingDataError as error:
        raise UserError(str(error)) from None
    except PermissionError as error:
        raise UserError(f"{spec.title}: cannot read {error.filename}: {error.strerror}") from None


def select(
    specs: Mapping[str, EnvSpec],
    selection: str,
    suite: Suite,
    *,
    data: Path | None,
    suite_seed: int = 0,
    limit: int | None = None,
) -> list[Task]:
    """The tasks that `selection` names: `all`, or a comma list of families, `family:range`, and task ids.

    In the order of the families' names and of their tables, each task once. `limit` keeps the first N of each
    family's selection.
    """
    if limit is not None and limit <= 0:
        raise UserError(f"--limit {limit} leaves no task; give a number above 0")
    chosen: dict[str, set[int]] = {}
    tables: dict[str, list[Task]] = {}

    def table(family: str) -> list[Task]:
        if family not in specs:
            raise UserError(f"unknown family {family!r}{nearest(family, sorted(specs))}")
        if family not in tables:
            tables[family] = family_tasks(specs[family], suite, data, suite_seed)
        return tables[family]

    for part in selection.split(","):
        item = part.strip()
        if not item:
            raise UserError(f"--tasks {selection!r} has an empty part")
        if item == "all":
            for family in specs:
                chosen.setdefault(family, set()).update(range(len(table(family))))
        elif "/" in item:
            family = item.split("/")[0]
            positions = {task.id: position for position, task in enumerate(table(family))}
            if item not in positions:
                raise UserError(f"unknown task {item!r}{nearest(item, list(positions)[:500])}")
            chosen.setdefault(family, set()).add(positions[item])
        else:
            family, _, span = item.partition(":")
            size = len(table(family))
            wanted = _positions(family, span, size) if ":" in item else range(size)
            chosen.setdefault(family, set()).update(wanted)
    tasks = [
        tables[family][position] for family in sorted(chosen) for position in sorted(chosen[family])[:limit]
    ]
    if not tasks:
        raise UserError(f"--tasks {selection!r} names no task of the {suite!r} suite")
    return tasks


def find_task(specs: Mapping[str, EnvSpec], task_id: str, data: Path | None, suite_seed: int = 0) -> Task:
    """The task of that id; the suite is read off the id."""
    parts = task_id.split("/")
    if len(parts) != 3:
        raise UserError(f"{task_id!r} is no task id; ids look like babyai/open/017 (see: evalharness tasks)")
    suite = next((known for known in SUITES if known == parts[1]), None)
    if suite is None:
        raise UserError(f"unknown suite {parts[1]!r}{nearest(parts[1], list(SUITES))}")
    return select(specs, task_id, suite, data=data, suite_seed=suite_seed)[0]
