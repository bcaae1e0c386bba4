"""Compute statistics of evaluations. Each function names its source; docs/statistics.md says when to use it.

The modules are imported only when one of their functions is first used, because importing scipy takes a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalharness.stats.agreement import cohen_kappa, kappa_interval
    from evalharness.stats.best_of_k import expected_best_of_k, pass_at_k, pass_hat_k
    from evalharness.stats.corrected import correct_limits, limits_of_mean
    from evalharness.stats.intervals import Z_95, Interval, bootstrap_mean, wilson
    from evalharness.stats.kinds import difference_p_by_kind, score_difference_by_kind, score_mean_by_kind
    from evalharness.stats.melded import paired_interval
    from evalharness.stats.paired import holm, mcnemar_exact, mcnemar_midp, permutation_test
    from evalharness.stats.power import (
        MOST_TASKS,
        detectable_by_attempts,
        detectable_difference,
        mcnemar_power,
        tasks_needed,
    )
    from evalharness.stats.ratio import bootstrap_ratios, mean_length_interval, ratios
    from evalharness.stats.repeats import attempts_test, standard_error, variance_components
    from evalharness.stats.score_interval import (
        pooled_interval,
        rate_interval,
        score_mean,
        stratified_score,
        subset_difference,
        subset_interval,
        success_interval,
    )
    from evalharness.stats.spread import spread_interval

__all__ = [
    "MOST_TASKS",
    "Z_95",
    "Interval",
    "attempts_test",
    "bootstrap_mean",
    "bootstrap_ratios",
    "cohen_kappa",
    "correct_limits",
    "detectable_by_attempts",
    "detectable_difference",
    "difference_p_by_kind",
    "expected_best_of_k",
    "holm",
    "kappa_interval",
    "limits_of_mean",
    "mcnemar_exact",
    "mcnemar_midp",
    "mcnemar_power",
    "mean_length_interval",
    "paired_interval",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "pooled_interval",
    "rate_interval",
    "ratios",
    "score_difference_by_kind",
    "score_mean",
    "score_mean_by_kind",
    "spread_interval",
    "standard_error",
    "stratified_score",
    "subset_difference",
    "subset_interval",
    "success_interval",
    "tasks_needed",
    "variance_components",
    "wilson",
]

_MODULES = (
    "intervals",
    "score_interval",
    "best_of_k",
    "paired",
    "melded",
    "power",
    "ratio",
    "kinds",
    "repeats",
    "corrected",
    "agreement",
    "spread",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            value = getattr(import_module(f"{__name__}.{module}"), name, None)
            if value is not None:
                globals()[name] = value
                return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
