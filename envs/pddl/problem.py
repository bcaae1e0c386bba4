"""Make a task from the texts of a PDDL domain and a PDDL problem."""

from __future__ import annotations

from importlib import resources
from typing import Any

from evalharness.envs.base import Suite, Task
from evalharness.envs.pddl.syntax import parse_domain, parse_problem
from evalharness.envs.pddl.wording import atom_text
from evalharness.envs.pddl_text import PddlError

DOMAINS = {"gripper": 20, "blockworld": 10, "barman": 20, "tyreworld": 10}
"""Domain -> number of its problems in each suite. Both suites have the domains in this order."""


def domain_text(kind: str) -> str:
    """Return the PDDL domain that we wrote; its actions have the same preconditions and effects as AgentBoard's."""
    return (
        resources.files("evalharness.envs.pddl")
        .joinpath("domains", f"{kind}.pddl")
        .read_text(encoding="utf-8")
    )


def make_task(
    suite: Suite, index: int, kind: str, difficulty: Any, domain_text: str, problem_text: str, **extra: Any
) -> Task:
    """Return a task with the texts of domain and problem in its payload, so that no file is needed to play it."""
    problem = parse_problem(problem_text, parse_domain(domain_text))
    if not problem.goal:
        raise PddlError("the goal is empty")
    return Task(
        id=f"pddl/{suite}/{index:03d}",
        family="pddl",
        suite=suite,
        index=index,
        goal=goal_text(problem.goal),
        difficulty=difficulty,
        kind=kind,
        labels="official" if suite == "agentboard" else "simulator",
        subgoals=subgoal_texts(problem.goal),
        payload={"domain": domain_text, "problem": problem_text, **extra},
    )


def goal_text(goal: tuple[tuple[str, ...], ...]) -> str:
    return "The goal is to satisfy the following conditions: " + ", ".join(sorted(map(atom_text, goal)))


def subgoal_texts(goal: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    return tuple(text.strip() for text in sorted(map(atom_text, goal)))
