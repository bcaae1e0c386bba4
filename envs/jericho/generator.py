"""The tasks of the open suite: ten hand-written stories and ten generated ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from envs.base import Task
from envs.difficulty import difficulty, search_bits
from envs.jericho.compiler import STORIES, find_compiler
from envs.jericho.quest_source import quest_source
from envs.jericho.quests import make_quest

QUESTS: Final = 10
HARD_BITS: Final = 50.0
"""Bits of search (`envs.difficulty`) from which a task counts as hard. The choices of a turn are the things the story
names, since trying out which commands do something takes the interpreter half a second a turn."""


def generate(suite_seed: int) -> Iterator[Task]:
    """The hand-written stories, then `QUESTS` quests drawn from the suite seed. Seed 0's are shipped compiled."""
    if suite_seed != 0:
        find_compiler()
    written: dict[str, Any] = yaml.safe_load((STORIES / "open.yaml").read_text(encoding="utf-8"))
    for index, (name, entry) in enumerate(written.items()):
        story = {"story": f"{name}.z5"}
        yield _task(index, name, entry["goal"], entry["subgoals"], entry["plan"], story, _source(name))
    for number in range(QUESTS):
        quest = make_quest(suite_seed, number)
        story_or_quest = (
            {"story": quest_story(number)} if suite_seed == 0 else {"quest": [suite_seed, number]}
        )
        yield _task(
            len(written) + number,
            quest.theme,
            quest.goal,
            quest.subgoals,
            quest.plan,
            story_or_quest,
            quest_source(quest),
        )


def _source(name: str) -> str:
    return (STORIES / f"{name}.inf").read_text(encoding="ascii")


def things(source: str) -> int:
    """How many things with names of their own a story has, rooms and passages not counted."""
    return len(re.findall(r"\bname\s+'", source))


def quest_story(number: int) -> str:
    """File name of the shipped story of quest `number` of seed 0."""
    return f"quest{number:02d}.z5"


def _task(
    index: int,
    kind: str,
    goal: str,
    subgoals: list[str] | tuple[str, ...],
    plan: Any,
    story: dict[str, Any],
    source: str,
) -> Task:
    return Task(
        id=f"jericho/open/{index:03d}",
        family="jericho",
        suite="open",
        index=index,
        goal=goal,
        difficulty=difficulty(search_bits([things(source)] * len(plan)), HARD_BITS),
        kind=kind,
        labels="ours",
        subgoals=tuple(subgoals),
        payload={**story, "plan": list(plan), "opening": ""},
    )
