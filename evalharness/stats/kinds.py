"""Compute intervals and tests whose independent units are kinds of tasks instead of tasks.

Each task belongs to a kind (a level of BabyAI, a domain of PDDL). A model that is better on one task of a kind is often
better on all tasks of that kind. So four tasks of the same level say less about a new level than four levels do.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalharness.stats.intervals import Interval
from evalharness.stats.score_interval import (
    UNSEEN,
    Values,
    count_unseen_pairs,
    limits,
    p_of_no_difference,
    within_strata,
)


@dataclass(frozen=True)
class Grouping:
    """Groups the tasks of a stratum (a family) by kind."""

    member: NDArray[np.float64]
    """Array of tasks x kinds: 1 if the task (row) belongs to the kind (column), otherwise 0."""

    @classmethod
    def of(cls, kinds: Sequence[Hashable]) -> Grouping:
        names = sorted(set(kinds), key=repr)
        return cls(np.array([[float(kind == name) for name in names] for kind in kinds]))

    @property
    def kinds(self) -> int:
        return int(self.member.shape[1])

    def square_sums(self, values: Values) -> Any:
        """Sum the residuals of each kind, and return the sum of the squares of these sums.

        Each square is corrected for the bias from estimating the mean. This is bias-reduced linearization (CR2) for a
        mean: R. M. Bell & D. F. McCaffrey, Survey Methodology 28 (2002) 169-181.
        """
        sizes = self.member.sum(axis=0)
        sums = (values - values.mean(axis=-1, keepdims=True)) @ self.member
        return (sums**2 / (1 - sizes / sizes.sum())).sum(axis=-1)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of `square_sums`: number of kinds - 1, or less if a few kinds have most of the tasks.
        Computed by Satterthwaite's method, as in Bell & McCaffrey, as if all tasks of a kind had equal results."""
        sizes = self.member.sum(axis=0)
        share = sizes / sizes.sum()
        scaled = np.diag(sizes / np.sqrt(1 - share)) @ (np.eye(len(sizes)) - share[None, :])
        moments = scaled @ scaled.T
        return float(np.trace(moments) ** 2 / np.trace(moments @ moments))


def inflation_by_kind(strata: Sequence[Values], groupings: Sequence[Grouping]) -> tuple[Any, Any]:
    """Return (variance with kinds as units / variance with tasks as units, degrees of freedom) of the mean.

    Every stratum needs two kinds. A ratio below 1 is raised to 1, because few kinds can be alike by chance.
    """
    n = sum(stratum.shape[-1] for stratum in strata)
    by_kind = [g.square_sums(s) for s, g in zip(strata, groupings, strict=True)]
    total = np.asarray(sum(by_kind))
    by_task = np.asarray(within_strata(strata)) * (n / (n - 1))
    known = (by_task > 1e-15) & (total > 1e-15)
    inflation = np.where(known, np.maximum(1.0, total / np.where(known, by_task, 1.0)), 1.0)
    # If no value varies, the degrees of freedom weight the strata by their numbers of tasks.
    parts = [np.where(known, part, s.shape[-1]) for part, s in zip(by_kind, strata, strict=True)]
    squares = sum(part**2 / g.freedom for part, g in zip(parts, groupings, strict=True))
    return inflation, sum(parts) ** 2 / squares


def _groupings(kinds: Sequence[Sequence[Hashable]]) -> list[Grouping] | None:
    groupings = [Grouping.of(listed) for listed in kinds]
    return groupings if all(grouping.kinds > 1 for grouping in groupings) else None


def _sort_tasks(
    strata: Sequence[Sequence[float]], kinds: Sequence[Sequence[Hashable]]
) -> tuple[list[Values], list[list[Hashable]]]:
    """Sort the tasks of each stratum, so that no sum depends on the order of the tasks."""
    pairs = [
        sorted(zip(listed, values, strict=True), key=lambda pair: (repr(pair[0]), pair[1]))
        for values, listed in zip(strata, kinds, strict=True)
    ]
    return [np.array([v for _, v in listed]) for listed in pairs], [
        [k for k, _ in listed] for listed in pairs
    ]


def score_mean_by_kind(
    strata: Sequence[Sequence[float]], kinds: Sequence[Sequence[Hashable]], confidence: float = 0.95
) -> Interval | None:
    """Return the score interval of the mean with kinds as units: the mean over all similar kinds of tasks.

    `kinds`: the kind of each value in `strata`. Return None if a stratum has only one kind.
    """
    values, listed = _sort_tasks(strata, kinds)
    return _interval(values, listed, confidence, UNSEEN)


def _interval(
    strata: Sequence[Values], kinds: Sequence[Sequence[Hashable]], confidence: float, unseen: Any
) -> Interval | None:
    groupings = _groupings(kinds)
    if groupings is None:
        return None
    inflation, freedom = inflation_by_kind(strata, groupings)
    inside = [stratum.clip(0.0, 1.0) for stratum in strata]
    low, high = limits(inside, confidence, inflation=inflation, freedom=freedom, unseen=unseen)
    return float(low), float(high)


def score_difference_by_kind(
    strata: Sequence[Sequence[float]], kinds: Sequence[Sequence[Hashable]], confidence: float = 0.95
) -> Interval | None:
    """Return the score interval of a mean paired difference -1..1 by kind; None if a stratum has only one kind."""
    values, listed = _sort_tasks(strata, kinds)
    shares = [(stratum + 1) / 2 for stratum in values]
    interval = _interval(shares, listed, confidence, count_unseen_pairs(shares))
    return None if interval is None else (2 * interval[0] - 1, 2 * interval[1] - 1)


def difference_p_by_kind(
    strata: Sequence[Sequence[float]], kinds: Sequence[Sequence[Hashable]]
) -> float | None:
    """Return the two-sided p of the test that belongs to the interval `score_difference_by_kind`. Return None if a
    stratum has only one kind.

    Flipping the signs of whole kinds is no alternative: with six kinds its smallest p is 2/2^6 = 0.03.
    """
    values, listed = _sort_tasks(strata, kinds)
    groupings = _groupings(listed)
    if groupings is None:
        return None
    inflation, freedom = inflation_by_kind(values, groupings)
    return float(p_of_no_difference(values, inflation=inflation, freedom=freedom))
