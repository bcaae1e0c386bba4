"""Draw a run's tasks from a larger suite by number and seed, or choose a subset that represents the held-out score."""

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
    """Return the draw from a suite of the family; None if the whole suite is played.

    `questions`: a number that replaces the family's default, or `all`. Suite seed 0 means the family's default seed.
    """
    own = spec.own.draw.get(suite)
    if own is None or questions == ALL:
        return None
    return Draw(own.tasks if questions is None else int(questions), suite_seed or own.seed)


def expected_tasks(spec: EnvSpec, suite: Suite, suite_seed: int, questions: str | None) -> int:
    """Return the number of tasks in a run over the whole family."""
    draw = find_draw(spec, suite, suite_seed, questions)
    return spec.suites.expected[suite] if draw is None else min(draw.tasks, spec.suites.expected[suite])


def draw_facts(
    specs: Mapping[str, EnvSpec], suite: Suite, suite_seed: int, questions: str | None
) -> dict[str, dict[str, Any]]:
    """Return family -> number and seed of its draw, for the manifest. Families without a draw are left out."""
    draws = {family: find_draw(spec, suite, suite_seed, questions) for family, spec in specs.items()}
    return {family: asdict(draw) for family, draw in draws.items() if draw is not None}


def spread_sample(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """Draw `count` tasks of a family, in proportion to the sizes of its kinds. Return them in the order of the table.

    Tasks are put in an order that spreads kinds evenly, and the first `count` tasks are taken. So a larger sample with
    the same seed contains the smaller one.
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
    """Return the drawn tasks in the order of the table."""
    if draw is None or draw.tasks >= len(tasks):
        return list(tasks)
    chosen = random.Random(draw.seed).sample(range(len(tasks)), draw.tasks)
    return [tasks[position] for position in sorted(chosen)]


_LEAST = 3
"""Smallest number of tasks per family in a subset, so that their variance can be measured."""


def subset_of(
    families: Mapping[str, Sequence[Task]], count: int, difficulty: Callable[[Task], float]
) -> dict[str, int]:
    """Choose `count` tasks that represent all tasks by family, kind and difficulty, the same tasks for every model.

    Return task id -> number of tasks of its family that it represents, family by family, easy tasks first. Each family
    gets its share of `count` (largest remainder, at least `_LEAST`). Its tasks are sorted by `difficulty`, then by
    kind, and divided into parts of nearly equal length. One task of each part is chosen, so that the subset has as many
    kinds as possible, and the tasks are near to the middles of their parts. Raise UserError if `count` is too small, or
    not smaller than the number of tasks.
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
        stretches = [line[first:end] for first, end in pairwise(cuts)]
        for task, stretch in zip(_one_of_each(stretches), stretches, strict=True):
            subset[task.id] = len(stretch)
    return subset


_NO_TASK = 1e6
"""Distance between a kind and a part without a task of that kind; larger than the sum of all other distances."""


def _one_of_each(stretches: Sequence[Sequence[Task]]) -> list[Task]:
    """Return one task of each part (see `subset_of`): assign kinds to parts so that the sum of distances is minimal."""
    from scipy.optimize import linear_sum_assignment  # importing it takes a third of a second

    chosen = [stretch[(len(stretch) - 1) // 2] for stretch in stretches]
    nearest: list[dict[str, Task]] = []
    distances: list[dict[str, float]] = []
    for stretch in stretches:
        middle = (len(stretch) - 1) // 2
        by_distance = sorted(range(len(stretch)), key=lambda place: -abs(place - middle))
        nearest.append({stretch[place].kind: stretch[place] for place in by_distance})
        distances.append({stretch[place].kind: float(abs(place - middle)) for place in by_distance})
    kinds = sorted({kind for listed in nearest for kind in listed})
    costs = [[listed.get(kind, _NO_TASK) for kind in kinds] for listed in distances]
    for place, kind in zip(*linear_sum_assignment(costs), strict=True):
        chosen[place] = nearest[place].get(kinds[kind], chosen[place])
    return chosen


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Return family -> number of tasks in the subset; the sum is `count`."""
    total = sum(sizes.values())
    exact = {family: count * size / total for family, size in sizes.items()}
    shares = {family: min(sizes[family], max(_LEAST, int(exact[family]))) for family in sizes}
    while (missing := count - sum(shares.values())) != 0:
        by = 1 if missing > 0 else -1
        can = [f for f in sizes if (shares[f] < sizes[f] if by > 0 else shares[f] > _LEAST)]
        shares[max(can, key=lambda f: by * (exact[f] - shares[f]))] += by
    return shares
