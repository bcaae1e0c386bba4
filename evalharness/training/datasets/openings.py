"""What evaluated tasks are recognised by in texts that name no task: their goals and first observations, as digests."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evalharness.base.paths import ranges_folder

FILE = "evaluated_openings.csv"
_COLUMNS = ("suite", "task_id", "observation", "goal")
_END = re.compile(r"\n|[.!?:;](?=\s|$)")


def parts_of(text: str) -> list[str]:
    """Sentences and lines without case, blanks and punctuation at their ends."""
    return [part for piece in _END.split(text.casefold()) if (part := " ".join(piece.split()).strip(".,!? "))]


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(parts: Sequence[str]) -> str:
    """`digest of the first part-number of parts-digest of all`: the first is looked for, the others then compared."""
    return f"{_digest(parts[:1])}-{len(parts)}-{_digest(parts)}"


@dataclass(frozen=True)
class Openings:
    """The openings of evaluated tasks."""

    lengths: dict[str, set[int]]
    """Digest of the first part of a goal or first observation -> how many parts it may have."""
    goals: dict[str, frozenset[str]]
    """First observation -> the goals of the tasks that begin with it."""
    suites: dict[str, str]
    """First observation -> the suite of such a task."""
    tasks: Counter[str]
    """Suite -> tasks."""

    def suite_in(self, texts: Iterable[str]) -> str | None:
        """The suite of a task whose first observation one of the texts repeats. One with which tasks of several goals
        begin (a room) tells only together with the goal."""
        found: set[str] = set()
        for parts in map(parts_of, texts):
            found.update(
                _key(parts[at : at + length])
                for at in range(len(parts))
                for length in self.lengths.get(_digest(parts[at : at + 1]), ())
            )
        return next(
            (
                self.suites[each]
                for each in sorted(found & self.goals.keys())
                if len(self.goals[each]) == 1 or found & self.goals[each]
            ),
            None,
        )


@cache
def evaluated_openings() -> Openings:
    """Of suite seed 0 and of the published suites of the five families."""
    goals: dict[str, set[str]] = {}
    suites, tasks, lengths = dict[str, str](), Counter[str](), dict[str, set[int]]()
    with (ranges_folder() / FILE).open(newline="", encoding="ascii") as file:
        for row in csv.DictReader(file):
            goals.setdefault(row["observation"], set()).add(row["goal"])
            suites[row["observation"]] = row["suite"]
            tasks[row["suite"]] += 1
            for key in (row["observation"], row["goal"]):
                first, length, _ = key.split("-")
                lengths.setdefault(first, set()).add(int(length))
    return Openings(lengths, {key: frozenset(each) for key, each in goals.items()}, suites, tasks)


def write_openings(path: Path, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """The table of (suite, task's id, first observation, goal)."""
    with path.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for suite, task_id, observation, goal in rows:
            writer.writerow([suite, task_id, _key(parts_of(observation)), _key(parts_of(goal))])
