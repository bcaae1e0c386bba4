"""What shared tests and benchmarks have to know of HotpotQA."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from evalharness.envs.base import Task, TextEnv
from evalharness.paper.hotpotqa.world import make_encyclopedia
from tests.support.contracts import Contract


def shape(task: Task) -> object:
    """All questions are about one world, so two of the same wording about other things are no copies."""
    return task.goal


def goal_template(task: Task) -> str:
    return re.sub(r"\b(?:[A-Z]|\d)[\w'’.-]*", "<>", task.goal)


def things(task: Task, environment: TextEnv, first_observation: str) -> int:
    """Pages that can be opened."""
    return len(make_encyclopedia(task.payload["world"]).by_title)


CONTRACT = Contract(
    open_tasks=300,
    shape=shape,
    goal_template=goal_template,
    # A question of yes or no can be guessed; the family's own tests say how often.
    none_is_done_in_two_turns=None,
    things=things,
    names=st.from_regex(r"[a-z]{2,8}", fullmatch=True),
    refusal=None,
    valid_actions_follow_the_text=True,
)
