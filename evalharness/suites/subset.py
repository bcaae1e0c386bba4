"""A few tasks that stand for the whole held-out score, by family and difficulty, the same for every model. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from evalharness.base.errors import UserError
from evalharness.envs.base import Task

_LEAST = 3
"""Tasks of a family: its spread has to be seen."""


def subset_of(
    families: Mapping[str, Sequence[Task]], count: int, difficulty: Callable[[Task], float]
) -> dict[str, int]:
    """Task id -> how many tasks of its family it stands for; `count` of them, family by family, easy ones first.

    Each family gets its share of `count` (largest remainder, `_LEAST` at least). Its tasks are lined up by
    `difficulty`, within equal ones by kind, and cut into as many stretches of equal length, give or take one; the task
    in the middle of each is taken. Raises UserError where `count` is too small or leaves nothing out.
    """
    sizes = {family: len(tasks) for family, tasks in families.items()}
    total, least = sum(sizes.values()), _LEAST * len(sizes)
    if not least <= count < total:
        raise UserError(
            f"--subset {count}: give {least} to {total - 1} of the {total} tasks of the held-out score"
        )
    found: dict[str, int] = {}
    for family, share in _shares(sizes, count).items():
        line = sorted(families[family], key=lambda task: (difficulty(task), task.kind, task.id))
        cuts = [round(place * len(line) / share) for place in range(share + 1)]
        for first, end in pairwise(cuts):
            found[line[(first + end - 1) // 2].id] = end - first
    return found


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Family -> its tasks, `count` in all."""
    total = sum(sizes.values())
    exact = {family: count * size / total for family, size in sizes.items()}
    shares = {family: min(sizes[family], max(_LEAST, int(exact[family]))) for family in sizes}
    while (missing := count - sum(shares.values())) != 0:
        by = 1 if missing > 0 else -1
        can = [f for f in sizes if (shares[f] < sizes[f] if by > 0 else shares[f] > _LEAST)]
        shares[max(can, key=lambda f: by * (exact[f] - shares[f]))] += by
    return shares
