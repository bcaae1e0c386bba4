"""What shared tests and benchmarks have to know of BabyAI."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from evalharness.envs.babyai.actions import CHECK, UNKNOWN, available
from evalharness.envs.babyai.world import World
from evalharness.envs.base import Task, TextEnv
from tests.support.contracts import Contract

COLOR = r"\b(red|green|blue|purple|yellow|grey)\b"


def world_of(task: Task) -> World:
    return World(task.kind, task.payload["seed"], task.payload.get("parameters"))


def shape(task: Task) -> object:
    """Mission and grid with the colours numbered as they appear in them."""
    simulator = world_of(task).simulator
    found = [
        "." if thing is None else f"{thing.color} {thing.type} {getattr(thing, 'is_locked', '')}"
        for thing in simulator.grid.grid
        if thing is None or thing.type != "wall"
    ]
    where = f"{simulator.agent_pos} {simulator.agent_dir} {simulator.grid.width}"
    numbers: dict[str, str] = {}
    text = "\n".join([task.goal, where, *found])
    return task.kind, re.sub(COLOR, lambda match: numbers.setdefault(match[0], f"<{len(numbers)}>"), text)


def goal_template(task: Task) -> str:
    return re.sub(rf"{COLOR}|\b(ball|box|key|door|object)\b|\b(a|the)\b", "<>", task.goal)


def none_is_done_in_two_turns(tasks: Sequence[Task]) -> None:
    for task in tasks:
        world = world_of(task)
        start = world.state()
        for first, opening in available(world.view, world.direction).moves.items():
            if first == CHECK:
                continue
            outcome = world.perform(opening, stop_at_end=True)
            assert not outcome.succeeded, (task.id, first)
            if outcome.ended:
                world.restore(start)
                continue
            after = world.state()
            for sentence, moves in available(world.view, world.direction).moves.items():
                if sentence != CHECK:
                    assert not world.perform(moves, stop_at_end=True).succeeded, (task.id, first, sentence)
                    world.restore(after)
            world.restore(start)


def things(task: Task, environment: TextEnv, first_observation: str) -> int:
    return sum(thing is not None and thing.type != "wall" for thing in world_of(task).simulator.grid.grid)


CONTRACT = Contract(
    open_tasks=112,
    shape=shape,
    goal_template=goal_template,
    none_is_done_in_two_turns=none_is_done_in_two_turns,
    things=things,
    names=st.from_regex(r"(red|grey) (ball|box|key) [1-9]", fullmatch=True),
    refusal=UNKNOWN,
    combined=("joined+order",),
    # Its planner looks far ahead.
    stride=3,
)
