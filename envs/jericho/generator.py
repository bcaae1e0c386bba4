"""The tasks of the open suite: of seed 0 ten hand-written stories and ten quests, of every other seed 20 quests.

A hand-written story is the same whenever it is played, so that no other suite has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from evalharness.envs.base import Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.jericho.compiler import STORIES, find_compiler
from evalharness.envs.jericho.quest_source import quest_source
from evalharness.envs.jericho.quests import quests_of

HARD_BITS: Final = 50.0
"""Bits of search (`evalharness.envs.difficulty`) from which a task counts as hard. The choices of a turn are the
things the story names, since trying out which commands do something takes the interpreter half a second a turn."""


def generate(suite_seed: int) -> Iterator[Task]:
    """All tasks in order. Seed 0's stories are shipped compiled."""
    written: dict[str, Any] = {}
    if suite_seed == FROZEN_SEED:
        written = yaml.safe_load((STORIES / "open.yaml").read_text(encoding="utf-8"))
    else:
        find_compiler()
    for index, (name, entry) in enumerate(written.items()):
        story = {"story": f"{name}.z5"}
        yield _task(index, name, entry["goal"], entry["subgoals"], entry["plan"], story, _source(name))
    for number, quest in enumerate(quests_of(suite_seed)):
        story_or_quest = (
            {"story": quest_story(number)} if suite_seed == FROZEN_SEED else {"quest": [suite_seed, number]}
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
