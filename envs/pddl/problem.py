"""Make a task from a problem, for both suites."""

from __future__ import annotations

from importlib import resources
from typing import Any

from evalharness.envs.base import Suite, Task
from evalharness.envs.pddl.syntax import parse_domain, parse_problem
from evalharness.envs.pddl.wording import atom_text
from evalharness.envs.pddl_text import PddlError

DOMAINS = {"gripper": 20, "blockworld": 10, "barman": 20, "tyreworld": 10}
"""Domain -> number of problems, in the order of both suites."""


def domain_text(kind: str) -> str:
    """Return our own domain file, which has exactly the behaviour of the published file."""
    return (
        resources.files("evalharness.envs.pddl")
        .joinpath("domains", f"{kind}.pddl")
        .read_text(encoding="utf-8")
    )


def make_task(
    suite: Suite, index: int, kind: str, difficulty: Any, domain_text: str, problem_text: str, **extra: Any
) -> Task:
    """Return a task that contains the PDDL text, so that playing it needs no file."""
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
