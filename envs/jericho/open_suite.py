"""The open suite, and where the story files of its tasks are."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from evalharness.base.paths import cache_folder, write_whole
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.envs.jericho.compiler import STORIES, compile_story
from evalharness.envs.jericho.distractors import quest_with
from evalharness.envs.jericho.generator import generate
from evalharness.envs.jericho.quest_source import quest_source
from evalharness.envs.jericho.quests import quests_of

RANDOM_SEED: Final = 1
"""Given to the interpreter for our stories; without one it would seed itself from the clock."""


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order."""
    return list(generate(suite_seed))


def story_of(task: Task) -> Path:
    """The story file of an open task, compiled first if it is a quest of another seed than 0."""
    if "quest" in task.payload:
        seed, number = map(int, task.payload["quest"])
        quest = quests_of(seed)[number]
        if (quest.goal, list(quest.plan)) != (task.goal, task.payload["plan"]):
            raise InvalidTaskError(
                f"{task.id}: this version makes another quest {number} of suite seed {seed}"
            )
        return _compiled(seed, number, int(task.payload.get("distractors", 0)))
    path = STORIES / str(task.payload["story"])
    if not path.is_file():
        raise InvalidTaskError(f"{path} is missing: install evalharness again")
    return path


@cache
def _compiled(seed: int, number: int, distractors: int) -> Path:
    """In the user's cache folder under its hash. The rename makes two workers that compile at once harmless."""
    story = compile_story(quest_source(quest_with(seed, number, distractors)))
    folder = cache_folder() / "stories"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(story).hexdigest()}.z5"
    if not path.is_file():
        write_whole(path, story, durable=False)
    return path
