"""The tasks of both suites."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from envs.base import InvalidTaskError, MissingDataError, Suite, Task
from envs.pddl.syntax import PddlError, parse_domain, parse_problem
from envs.pddl.wording import atom_text

DOMAINS = {"gripper": 20, "blockworld": 10, "barman": 20, "tyreworld": 10}
"""Domain -> number of problems, in the order of both suites."""


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    if suite == "agentboard":
        return _published(data)
    from envs.pddl.generate import open_tasks

    return open_tasks(seed)


def domain_text(kind: str) -> str:
    """Our own domain file, which plays exactly as the published one."""
    return resources.files("envs.pddl").joinpath("domains", f"{kind}.pddl").read_text(encoding="utf-8")


def make_task(
    suite: Suite, index: int, kind: str, difficulty: Any, domain_text: str, problem_text: str, **extra: Any
) -> Task:
    """A task that carries its PDDL, so that playing it needs no file."""
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


def _published(data: Path | None) -> list[Task]:
    folder = (data or Path()) / "agentboard" / "pddl"
    if data is None or not (folder / "test.jsonl").is_file():
        raise MissingDataError("the published PDDL tasks need the benchmark's data")
    rows = [json.loads(line) for line in _read(folder / "test.jsonl").splitlines() if line.strip()]
    tasks: list[Task] = []
    for kind in DOMAINS:
        domain_text = _read(folder / f"{kind}.pddl")
        # Lexicographic order of the file names is the published order: problem1, problem10, problem2, ...
        for file in sorted((folder / kind).glob("*.pddl"), key=lambda path: path.name):
            index = len(tasks)
            if index >= len(rows) or rows[index]["additional_info"]["subtask"] != kind:
                raise InvalidTaskError(
                    f"{folder / 'test.jsonl'} does not match the problem files at row {index}; "
                    "get both with: evalharness data fetch"
                )
            try:
                task = make_task(
                    "agentboard",
                    index,
                    kind,
                    rows[index]["difficulty"],
                    domain_text,
                    _read(file),
                    file=file.name,
                )
            except PddlError as error:
                raise InvalidTaskError(
                    f"{file}: {error}; get the data again: evalharness data fetch"
                ) from None
            tasks.append(task)
    if len(tasks) != len(rows):
        raise InvalidTaskError(
            f"{folder} has {len(tasks)} problem files for {len(rows)} labels; get both with: evalharness data fetch"
        )
    return tasks


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingDataError(f"{file} is missing") from None
