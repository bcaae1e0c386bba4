"""Sample a run's tasks from a suite at random, or choose a subset of tasks that represents the held-out score."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from evalharness.base.errors import UserError
from evalharness.envs.base import Draw, EnvSpec, Suite, Task

ALL = "all"


def find_draw(spec: EnvSpec, suite: Suite, suite_seed: int, questions: str | None) -> Draw | None:
    """Return how many tasks a run samples from the suite, and with which seed; None if it plays the whole suite.

    `questions`: number of tasks instead of the family's default, or `all`. For suite seed 0, use the family's own seed.
    """
    own = spec.own.draw.get(suite)
    if own is None or questions == ALL:
        return None
    return Draw(own.tasks if questions is None else int(questions), suite_seed or own.seed)


def expected_tasks(spec: EnvSpec, suite: Suite, suite_seed: int, questions: str | None) -> int:
    """Return the number of tasks that a run plays if it selects the whole family."""
    draw = find_draw(spec, suite, suite_seed, questions)
    return spec.suites.expected[suite] if draw is None else min(draw.tasks, spec.suites.expected[suite])


def describe_draws(
    specs: Mapping[str, EnvSpec], suite: Suite, suite_seed: int, questions: str | None
) -> dict[str, dict[str, Any]]:
    """Return family -> number of sampled tasks and seed, for the manifest. Leave out a family without sampling."""
    draws = {family: find_draw(spec, suite, suite_seed, questions) for family, spec in specs.items()}
    return {family: asdict(draw) for family, draw in draws.items() if draw is not None}


def spread_sample(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """Sample `count` tasks of a family, in proportion to the sizes of its kinds. Return the tasks in the suite's order.

    The tasks are sorted at random, so that every kind is spread evenly, and the first `count` tasks are taken. So with
    the same seed, a larger sample contains every smaller sample.
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
    """Return the sampled tasks in the suite's order."""
    if draw is None or draw.tasks >= len(tasks):
        return list(tasks)
    chosen = random.Random(draw.seed).sample(range(len(tasks)), draw.tasks)
    return [tasks[position] for position in sorted(chosen)]


_LEAST = 3
"""Smallest number of tasks of a family in a subset; with fewer tasks, the variance of the score would be unreliable."""


def choose_subset(
    families: Mapping[str, Sequence[Task]], count: int, difficulty: Callable[[Task], float]
) -> dict[str, int]:
    """Choose a stratified subset of `count` tasks by family, difficulty and kind. It is the same for every model.

    Return id of a chosen task -> number of tasks that it represents. Each family gets tasks in proportion to its size
    (largest remainder, at least `_LEAST`). The tasks of a family are sorted by `difficulty`, then by kind, and divided
    into strata of nearly equal size. One task of each stratum is chosen, so that the subset has as many kinds as
    possible, and each task is near the middle of its stratum. Raise UserError if `count` is too small, or not smaller
    than the number of tasks.
    """
    sizes = {family: len(tasks) for family, tasks in families.items()}
    total, least = sum(sizes.values()), _LEAST * len(sizes)
    if not least <= count < total:
        raise UserError(
            f"--subset {count}: give {least} to {total - 1} of the {total} tasks of the held-out score"
        )
    subset: dict[str, int] = {}
    for family, share in _shares(sizes, count).items():
        line = sorted(families[family], key=lambda task: (difficulty(task), task.kind, task.id))
        cuts = [round(place * len(line) / share) for place in range(share + 1)]
        strata = [line[first:end] for first, end in pairwise(cuts)]
        for task, stratum in zip(_choose_tasks(strata), strata, strict=True):
            subset[task.id] = len(stratum)
    return subset


_NO_TASK = 1e6
"""Cost of a kind for a stratum that has no task of this kind. It is larger than the sum of all other costs."""


def _choose_tasks(strata: Sequence[Sequence[Task]]) -> list[Task]:
    """Return one task of each stratum: assign kinds to strata, so that tasks are as near to the middle as possible."""
    from scipy.optimize import linear_sum_assignment  # this import takes a third of a second

    chosen = [stratum[(len(stratum) - 1) // 2] for stratum in strata]
    nearest: list[dict[str, Task]] = []
    distances: list[dict[str, float]] = []
    for stratum in strata:
        middle = (len(stratum) - 1) // 2
        by_distance = sorted(range(len(stratum)), key=lambda place: -abs(place - middle))
        nearest.append({stratum[place].kind: stratum[place] for place in by_distance})
        distances.append({stratum[place].kind: float(abs(place - middle)) for place in by_distance})
    kinds = sorted({kind for listed in nearest for kind in listed})
    costs = [[listed.get(kind, _NO_TASK) for kind in kinds] for listed in distances]
    for place, kind in zip(*linear_sum_assignment(costs), strict=True):
        chosen[place] = nearest[place].get(kinds[kind], chosen[place])
    return chosen


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Return family -> number of its tasks in the subset. The sum of the numbers is `count`."""
    total = sum(sizes.values())
    exact = {family: count * size / total for family, size in sizes.items()}
    shares = {family: min(sizes[family], max(_LEAST, int(exact[family]))) for family in sizes}
    while (missing := count - sum(shares.values())) != 0:
        by = 1 if missing > 0 else -1
        can = [f for f in sizes if (shares[f] < sizes[f] if by > 0 else shares[f] > _LEAST)]
        shares[max(can, key=lambda f: by * (exact[f] - shares[f]))] += by
    return shares
