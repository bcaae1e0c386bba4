"""What shared tests and benchmarks have to know of ALFWorld."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from hypothesis import strategies as st

from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.open.households import household_of
from evalharness.envs.base import Task, TextEnv
from tests.support.contracts import Contract


def shape(task: Task) -> object:
    return household_of(task).shape()


def goal_template(task: Task) -> str:
    things = f"{task.payload['object']}|{task.payload['target']}"
    return re.sub(rf"\b({things})\b", "<>", task.goal)


def none_is_done_in_two_turns(tasks: Sequence[Task]) -> None:
    """All pairs of commands, in three households. The oracle's plans, three and more, are shortest by construction."""
    env = SPEC.make(None)
    for task in random.Random(0).sample(tasks, 3):
        env.reset(options={"task": task})
        for first in env.valid_actions():
            env.reset(options={"task": task})
            assert not env.step(first)[4]["success"]
            for second in env.valid_actions():
                env.reset(options={"task": task})
                env.step(first)
                assert not env.step(second)[4]["success"], (task.id, first, second)


def things(task: Task, environment: TextEnv, first_observation: str) -> int:
    """Receptacles named at the start, and the things found on a walk to (and into) each of them."""
    observation, _ = environment.reset(options={"task": task})
    places = re.findall(r"\b[a-z]+ \d+", observation)
    found: set[str] = set()
    for place in places:
        text = environment.step(f"go to {place}")[0] + environment.step(f"open {place}")[0]
        found.update(re.findall(r"\b[a-z]+ \d+", text))
    return len(found | set(places))


CONTRACT = Contract(
    open_tasks=134,
    shape=shape,
    goal_template=goal_template,
    none_is_done_in_two_turns=none_is_done_in_two_turns,
    things=things,
    names=st.from_regex(r"[a-z]{2,8} [1-9][0-9]?", fullmatch=True),
    refusal="Nothing happens.",
    combined=("P1+P2+P3+P4+P5", "P4+capitals+verbs"),
    slow=True,
)
