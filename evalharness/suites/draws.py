"""Drawing a run's tasks from a suite that is larger than a run: how many, with which seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from evalharness.envs.base import Draw, EnvSpec, Suite, Task

ALL = "all"


def the_draw(spec: EnvSpec, suite: Suite, suite_seed: int, questions: str | None) -> Draw | None:
    """What is drawn from a suite of the family; None where all of it is played.

    `questions`: how many instead of the family's own number, or `all`. Suite seed 0 is the family's own seed.
    """
    own = spec.own.draw.get(suite)
    if own is None or questions == ALL:
        return None
    return Draw(own.tasks if questions is None else int(questions), suite_seed or own.seed)


def expected_tasks(spec: EnvSpec, suite: Suite, suite_seed: int, questions: str | None) -> int:
    """How many tasks a run over the whole family plays."""
    draw = the_draw(spec, suite, suite_seed, questions)
    return spec.suites.expected[suite] if draw is None else min(draw.tasks, spec.suites.expected[suite])


def draw_facts(
    specs: Mapping[str, EnvSpec], suite: Suite, suite_seed: int, questions: str | None
) -> dict[str, dict[str, Any]]:
    """Family -> number and seed of its draw, for the manifest; families that draw nothing are not in it."""
    draws = {family: the_draw(spec, suite, suite_seed, questions) for family, spec in specs.items()}
    return {family: asdict(draw) for family, draw in draws.items() if draw is not None}


def spread_sample(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """`count` of a family's tasks, each kind with its share of them, in the order of the table.

    A larger sample of the same seed holds the smaller one: tasks are lined up so that every kind comes evenly, and the
    first `count` of the line are taken.
    """
    rng = random.Random(f"{seed}/{tasks[0].family}" if tasks else "")
    kinds: dict[str, list[Task]] = {}
    for task in tasks:
        kinds.setdefault(task.kind, []).append(task)
    line = []
    for kind in sorted(kinds):
        own = rng.sample(kinds[kind], len(kinds[kind]))
        line += [((place + 0.5) / len(own), rng.random(), task.id) for place, task in enumerate(own)]
    chosen = {task_id for _, _, task_id in sorted(line)[:count]}
    return [task for task in tasks if task.id in chosen]


def draw_tasks(tasks: Sequence[Task], draw: Draw | None) -> list[Task]:
    """The drawn tasks in the order of the table."""
    if draw is None or draw.tasks >= len(tasks):
        return list(tasks)
    chosen = random.Random(draw.seed).sample(range(len(tasks)), draw.tasks)
    return [tasks[position] for position in sorted(chosen)]
