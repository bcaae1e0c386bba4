"""The tasks of the `open` suite: ten hand-written stories and ten generated ones, and where their story files are."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from envs.base import InvalidTaskError, Task
from envs.difficulty import difficulty, search_bits
from envs.jericho.compiler import STORIES, compile_story, find_compiler
from envs.jericho.quest_source import quest_source
from envs.jericho.quests import make_quest
from evalharness.paths import cache_folder, write_whole

QUESTS: Final = 10
HARD_BITS: Final = 50.0
"""Bits of search (`envs.difficulty`) from which a task counts as hard. The choices of a turn are the things the story
names, since trying out which commands do something takes the interpreter half a second a turn."""
RANDOM_SEED: Final = 1
"""Given to the interpreter for our stories; without one it would seed itself from the clock."""


def open_tasks(seed: int) -> list[Task]:
    """The hand-written stories, then `QUESTS` quests drawn from the suite seed. Seed 0's are shipped compiled."""
    if seed != 0:
        find_compiler()
    written: dict[str, Any] = yaml.safe_load((STORIES / "open.yaml").read_text(encoding="utf-8"))
    tasks = [
        _task(
            index,
            name,
            entry["goal"],
            entry["subgoals"],
            entry["plan"],
            {"story": f"{name}.z5"},
            _source(name),
        )
        for index, (name, entry) in enumerate(written.items())
    ]
    for number in range(QUESTS):
        quest = make_quest(seed, number)
        story = {"story": quest_story(number)} if seed == 0 else {"quest": [seed, number]}
        source = quest_source(quest)
        tasks.append(_task(len(tasks), quest.theme, quest.goal, quest.subgoals, quest.plan, story, source))
    return tasks


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


def story_of(task: Task) -> Path:
    """The story file of an open task, compiled first if it is a quest of another seed than 0."""
    if "quest" in task.payload:
        seed, number = task.payload["quest"]
        return _compiled(int(seed), int(number))
    path = STORIES / str(task.payload["story"])
    if not path.is_file():
        raise InvalidTaskError(f"{path} is missing: install evalharness again")
    return path


@cache
def _compiled(seed: int, number: int) -> Path:
    """In the user's cache folder under its hash. The rename makes two workers that compile at once harmless."""
    story = compile_story(quest_source(make_quest(seed, number)))
    folder = cache_folder() / "stories"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(story).hexdigest()}.z5"
    if not path.is_file():
        write_whole(path, story, durable=False)
    return path
