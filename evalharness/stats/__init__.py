"""Statistics of evaluations: pure, vectorised, each function with its source (docs/statistics.md says which when)."""

from evalharness.stats.best_of_k import expected_best_of_k, pass_at_k, pass_hat_k
from evalharness.stats.intervals import (
    RESAMPLES,
    Z_95,
    Interval,
    bootstrap_mean,
    bootstrap_weighted_mean,
    wilson,
)
from evalharness.stats.paired import (
    holm,
    mcnemar_exact,
    newcombe_paired,
    permutation_test,
)
from evalharness.stats.power import detectable_mean_difference, detectable_success_difference, mcnemar_power

__all__ = [
    "RESAMPLES",
    "Z_95",
    "Interval",
    "bootstrap_mean",
    "bootstrap_weighted_mean",
    "detectable_mean_difference",
    "detectable_success_difference",
    "expected_best_of_k",
    "holm",
    "mcnemar_exact",
    "mcnemar_power",
    "newcombe_paired",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "wilson",
]
