"""What shared tests and benchmarks have to know of PDDL."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from evalharness.envs.base import Task, TextEnv
from evalharness.envs.pddl.adapter import UNCLEAR
from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.open.form import form
from evalharness.envs.pddl.syntax import parse_domain, parse_problem
from tests.support.contracts import Contract


def shape(task: Task) -> object:
    domain = parse_domain(task.payload["domain"])
    return form(domain, parse_problem(task.payload["problem"], domain))


def goal_template(task: Task) -> str:
    return str(task.payload["template"]) + task.kind


def none_is_done_in_two_turns(tasks: Sequence[Task]) -> None:
    for task in tasks:
        domain = parse_domain(task.payload["domain"])
        world = GroundedProblem(domain, parse_problem(task.payload["problem"], domain))
        states = {world.initial}
        for _ in range(3):
            assert not any(map(world.solved, states)), task.id
            states = {world.result(state, action) for state in states for action in world.applicable(state)}


def things(task: Task, environment: TextEnv, first_observation: str) -> int:
    return len(parse_problem(task.payload["problem"], parse_domain(task.payload["domain"])).objects)


CONTRACT = Contract(
    open_tasks=60,
    shape=shape,
    goal_template=goal_template,
    none_is_done_in_two_turns=none_is_done_in_two_turns,
    things=things,
    names=st.from_regex(r"[a-z]{1,6}[0-9]{0,2}", fullmatch=True),
    refusal=UNCLEAR,
)
