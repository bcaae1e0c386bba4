"""How far the best of several equally good models would seem to lead by luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_DRAWS = 20_000
_SEED = 0


@dataclass(frozen=True)
class LeadByChance:
    """In the unit of the values."""

    lead: float
    """Of the best over the mean of all."""
    expected: float
    """The mean lead of the best of as many that are all equally good."""
    high: float
    """The lead that the best of them reaches in 5 of 100 cases."""
    p: float
    """Share of cases in which it leads at least as much as the one that was found."""


def lead_by_chance(strata: Sequence[ArrayLike]) -> LeadByChance | None:
    """`strata`: of each family, values with a row a model and a column a task, the same tasks for all. None where there
    are fewer than two models, or a family with fewer than two tasks.

    Models that are equally good differ by what the tasks happen to suit: their scores are drawn from a normal
    distribution with equal means and the covariance that was measured over the tasks (within families), so that the
    luck that all of them share does not count. Seeded: the same values give the same answer.
    """
    values = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not values or values[0].shape[0] < 2 or any(stratum.shape[1] < 2 for stratum in values):
        return None
    tasks = sum(stratum.shape[1] for stratum in values)
    scores = np.sum([stratum.sum(axis=1) for stratum in values], axis=0) / tasks
    # The covariance of the weighted mean of the families' means.
    covariance = np.sum([np.cov(stratum) * stratum.shape[1] for stratum in values], axis=0) / tasks**2
    draws = np.random.default_rng(_SEED).multivariate_normal(
        np.zeros(len(scores)), covariance, size=_DRAWS, method="eigh"
    )
    leads = draws.max(axis=1) - draws.mean(axis=1)
    lead = float(scores.max() - scores.mean())
    return LeadByChance(
        lead=lead,
        expected=float(leads.mean()),
        high=float(np.quantile(leads, 0.95)),
        # With the case itself, as a permutation test counts: never 0.
        p=float((np.sum(leads >= lead - 1e-12) + 1) / (_DRAWS + 1)),
    )
