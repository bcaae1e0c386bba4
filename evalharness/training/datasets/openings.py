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
_WORD = re.compile(r"[^\W_]+")
_ACTIONS = re.compile(r"^available actions:", re.IGNORECASE | re.MULTILINE)
_FIRST = 4
"""Words by which a goal or first observation is looked for, before all its words are compared. No text has under 3."""
_LONG = 20
"""A text of so many words is recognised in the middle of a sentence, a shorter one only if it stands alone: "go to the
red ball" is not "go to the red ball and open a door"."""


def _words(text: str) -> tuple[list[str], list[bool]]:
    """The words without case, and whether more than blanks stands before each and at the end: how a text is set in
    lines, quoted or marked up does not matter."""
    text = text.casefold().replace("\\n", "\n")
    found = list(_WORD.finditer(text))
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    gaps = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    alone = ["\n" in gap or bool(gap.strip()) for gap in gaps]
    alone[0] = alone[-1] = True
    return [match.group() for match in found], alone


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(words: Sequence[str]) -> str:
    """`digest of the first words-number of words-digest of all`: the first are looked for, all of them compared."""
    return f"{_digest(words[:_FIRST])}-{len(words)}-{_digest(words)}"


@dataclass(frozen=True)
class Openings:
    """The openings of evaluated tasks."""

    lengths: dict[str, set[int]]
    """Digest of the first words of a goal or first observation -> how many words it may have."""
    goals: dict[str, frozenset[str]]
    """First observation -> the goals of the tasks that begin with it."""
    suites: dict[str, str]
    """First observation -> the suite of such a task."""
    tasks: Counter[str]
    """Suite -> tasks."""

    def suite_in(self, texts: Iterable[str]) -> str | None:
        """The suite of a task whose first observation one of the texts repeats. One with which tasks of several goals
        begin (a room) tells only together with the goal."""
        found = {_key([])}  # of tasks without a goal
        for words, alone in map(_words, texts):
            found.update(
                _key(words[at : at + length])
                for at in range(len(words))
                for first in (_FIRST - 1, _FIRST)
                for length in self.lengths.get(_digest(words[at : at + first]), ())
                if at + length <= len(words) and (length >= _LONG or (alone[at] and alone[at + length]))
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
    """The table of (suite, task's id, first observation, goal). Actions that an observation lists are no part of it:
    other wordings of the actions list others."""
    with path.open("w", newline="", encoding="ascii") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for suite, task_id, observation, goal in rows:
            writer.writerow(
                [suite, task_id, _key(_words(_ACTIONS.split(observation)[0])[0]), _key(_words(goal)[0])]
            )
