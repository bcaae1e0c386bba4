"""How far the best of several equally good models leads by luck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

_DRAWS = 20_000
_SEED = 0


@dataclass(frozen=True)
class LeadByChance:
    """The best model's lead and the leads that luck gives, in the unit of the values."""

    lead: float
    """The best model's mean minus the mean of all models."""
    expected: float
    """The expected lead of the best model if all models are equally good."""
    high: float
    """The lead that luck exceeds in 5 of 100 cases if all models are equally good."""
    p: float
    """The probability that luck gives a lead of at least `lead`."""


def lead_by_chance(strata: Sequence[ArrayLike]) -> LeadByChance | None:
    """Compare the best model's lead with the lead that luck gives to the best of equally good models.

    `strata`: for each family, values with one row per model and one column per task; all models played the same tasks.
    None if there are fewer than two models, or if a family has fewer than two tasks. The simulated models have
    normally distributed scores with equal means and the covariance measured over the tasks (within families): luck
    that all models share does not count. Seeded: the same values give the same answer.
    """
    values = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not values or values[0].shape[0] < 2 or any(stratum.shape[1] < 2 for stratum in values):
        return None
    tasks = sum(stratum.shape[1] for stratum in values)
    scores = np.sum([stratum.sum(axis=1) for stratum in values], axis=0) / tasks
    # Covariance of the weighted mean of the families' means.
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
        # The observed case counts too, as in a permutation test, so p is never 0.
        p=float((np.sum(leads >= lead - 1e-12) + 1) / (_DRAWS + 1)),
    )
