"""Generate the open suite: ten hand-written stories and ten generated quests for seed 0, and 20 quests for other seeds.

The story files of seed 0 are part of the package. `python -m evalharness.envs.jericho.open.generator` writes them
again. Maintainers must run this program after a change of a story, of the quest generator or of its themes; otherwise a
test fails.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from evalharness.base.paths import cache_folder, write_whole
from evalharness.envs.base import InvalidTaskError, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.jericho.open.compiler import STORIES, compile_story, find_compiler
from evalharness.envs.jericho.open.quest_source import quest_source
from evalharness.envs.jericho.open.quests import quests_of

RANDOM_SEED: Final = 1
"""Seed of the interpreter's random numbers in our stories. Without a seed, episodes could not be repeated."""
HARD_BITS: Final = 50.0
"""A task is hard if `search_bits` of its plan is at least this value. Every turn counts the things in the story as
choices, because counting the valid commands would take half a second per turn."""


def generate(suite_seed: int) -> Iterator[Task]:
    """Yield all tasks in order. Raise InvalidTaskError for a seed other than 0 if no Inform 6 compiler is installed."""
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


def count_things(source: str) -> int:
    """Return the number of named things in a story, without rooms and passages."""
    return len(re.findall(r"\bname\s+'", source))


def quest_story(number: int) -> str:
    """Return the file name of the shipped story of quest `number` of seed 0."""
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
        difficulty=difficulty(search_bits([count_things(source)] * len(plan)), HARD_BITS),
        kind=kind,
        labels="ours",
        subgoals=tuple(subgoals),
        payload={**story, "plan": list(plan), "opening": ""},
    )


def story_of(task: Task) -> Path:
    """Return the story file of an open task. If the suite seed is not 0, compile the story first."""
    if "quest" in task.payload:
        seed, number = map(int, task.payload["quest"])
        quest = quests_of(seed)[number]
        if (quest.goal, list(quest.plan)) != (task.goal, task.payload["plan"]):
            raise InvalidTaskError(
                f"{task.id}: this version generates a different quest {number} of suite seed {seed}"
            )
        return _compile(seed, number)
    path = STORIES / str(task.payload["story"])
    if not path.is_file():
        raise InvalidTaskError(f"{path} is missing: install evalharness again")
    return path


@cache
def _compile(seed: int, number: int) -> Path:
    """Compile a quest into the user's cache folder, unless it is there already. Return the path of the story file."""
    story = compile_story(quest_source(quests_of(seed)[number]))
    folder = cache_folder() / "stories"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{hashlib.sha256(story).hexdigest()}.z5"
    if not path.is_file():
        write_whole(path, story, durable=False)
    return path


def _build() -> None:
    for number, quest in enumerate(quests_of(FROZEN_SEED)):
        source = (STORIES / quest_story(number)).with_suffix(".inf")
        source.write_text(quest_source(quest), encoding="ascii")
    for source in sorted(STORIES.glob("*.inf")):
        story = compile_story(source.read_text(encoding="ascii"))
        source.with_suffix(".z5").write_bytes(story)
        print(f"{source.stem}: {len(story)} bytes")


if __name__ == "__main__":
    _build()
