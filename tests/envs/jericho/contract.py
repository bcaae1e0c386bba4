"""What shared tests and benchmarks have to know of Jericho."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from evalharness.envs.base import Task, TextEnv
from evalharness.envs.jericho import SPEC
from evalharness.envs.jericho.interpreter import Interpreter
from evalharness.envs.jericho.open.generator import story_of
from evalharness.envs.jericho.open.quests import quests_of, themes
from evalharness.envs.jericho.tasks import find_published_story
from tests.support.contracts import Contract

OPEN_TASKS = 20


def shape(task: Task) -> object:
    """A hand-written story is like no other; a quest is its map, gates and hiding places, whatever its theme says."""
    if "quest" in task.payload:
        seed, number = task.payload["quest"]
        return quests_of(seed)[number].shape
    number = task.index - (OPEN_TASKS - len(quests_of(0)))
    return tuple(task.payload["plan"]) if number < 0 else quests_of(0)[number].shape


def goal_template(task: Task) -> str:
    known = [
        name
        for theme in themes().values()
        for name in (theme["treasure"]["name"], *(altar["name"] for altar in theme["altar"]))
    ]
    return re.sub("|".join(map(re.escape, known)), "<>", task.goal)


def none_is_done_in_two_turns(tasks: Sequence[Task]) -> None:
    """All pairs of commands that change the world, in the three tasks with the fewest subgoals."""
    env = SPEC.make(None)
    for task in sorted(tasks, key=lambda task: len(task.subgoals))[:3]:
        env.reset(options={"task": task})
        for first in env.valid_actions():
            env.reset(options={"task": task})
            assert not env.step(first)[4]["success"], (task.id, first)
            for second in env.valid_actions():
                env.reset(options={"task": task})
                env.step(first)
                assert not env.step(second)[4]["success"], (task.id, first, second)


def things(task: Task, environment: TextEnv, first_observation: str) -> int:
    if task.suite == "open":  # Jericho does not know where our stories keep their objects
        return len(re.findall(r"(?m)^\s*Object\b", story_of(task).with_suffix(".inf").read_text()))
    return len(Interpreter(find_published_story(task, environment.data), seed=1).frotz.get_world_objects())


CONTRACT = Contract(
    open_tasks=OPEN_TASKS,
    shape=shape,
    goal_template=goal_template,
    none_is_done_in_two_turns=none_is_done_in_two_turns,
    things=things,
    names=st.from_regex(r"[a-z]{2,8}", fullmatch=True),
    refusal=None,
    slow=True,
)
