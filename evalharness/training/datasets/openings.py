"""Recognise evaluation tasks in conversations without a task id by digests of their goals and first observations."""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from evalharness.base.paths import ranges_folder

FILE = "evaluated_openings.csv"
_WORD = re.compile(r"[^\W_]+")
_FIRST = 4
"""Candidates are looked up by this many first words, before all words are compared. No text has fewer than 3 words."""
_LONG = 20
"""A goal or observation of this many words is also recognised inside a sentence of a message. A shorter one must be a
whole sentence, because "go to the red ball" is another goal than "go to the red ball and open a door"."""


def split_words(text: str) -> tuple[list[str], list[bool]]:
    """Return the words in lower case, without quotes and markup. For each gap between words, return whether it contains
    a line break or punctuation."""
    text = text.casefold().replace("\\n", "\n")
    matches = list(_WORD.finditer(text))
    ends = [0, *(match.end() for match in matches)]
    starts = [*(match.start() for match in matches), len(text)]
    gaps = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    alone = ["\n" in gap or bool(gap.strip()) for gap in gaps]
    alone[0] = alone[-1] = True
    return [match.group() for match in matches], alone


def _hash_words(words: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def make_key(words: Sequence[str]) -> str:
    """Return `digest of the first words-number of words-digest of all words`."""
    return f"{_hash_words(words[:_FIRST])}-{len(words)}-{_hash_words(words)}"


@dataclass(frozen=True)
class Openings:
    """The goals and first observations of evaluation tasks, as keys of `make_key`."""

    lengths: dict[str, set[int]]
    """Digest of the first words of a goal or observation -> possible numbers of words."""
    goals: dict[str, frozenset[str]]
    """First observation -> goals of the tasks with this first observation."""
    suites: dict[str, str]
    """First observation -> suite of the task."""
    tasks: Counter[str]
    """Suite -> number of tasks."""

    def find_suite(self, texts: Iterable[str]) -> str | None:
        """Return the suite of a task whose first observation is in one of the texts. If tasks of several goals share
        the observation, one of the goals must be in the texts, too."""
        keys = {make_key([])}  # the key of an empty goal, because some tasks have no goal text
        for words, alone in map(split_words, texts):
            keys.update(
                make_key(words[at : at + length])
                for at in range(len(words))
                for first in (_FIRST - 1, _FIRST)
                for length in self.lengths.get(_hash_words(words[at : at + first]), ())
                if at + length <= len(words) and (length >= _LONG or (alone[at] and alone[at + length]))
            )
        return next(
            (
                self.suites[each]
                for each in sorted(keys & self.goals.keys())
                if len(self.goals[each]) == 1 or keys & self.goals[each]
            ),
            None,
        )


@cache
def load_openings() -> Openings:
    """Load the openings of suite seed 0 and of the published suites of the five families."""
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
