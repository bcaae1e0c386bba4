"""Statistics of evaluations: pure, vectorised, each function with its source (docs/statistics.md says which when).

Each module is imported when a name of it is first used: scipy takes a second, which the start of every run and
resumption would wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalharness.stats.agreement import cohen_kappa, kappa_interval
    from evalharness.stats.best_of_k import expected_best_of_k, pass_at_k, pass_hat_k
    from evalharness.stats.intervals import (
        RESAMPLES,
        Z_95,
        Interval,
        bootstrap_mean,
        bootstrap_weighted_mean,
        rate_interval,
        score_mean,
        wilson,
    )
    from evalharness.stats.paired import (
        holm,
        mcnemar_exact,
        newcombe_paired,
        permutation_test,
    )
    from evalharness.stats.power import (
        detectable_mean_difference,
        detectable_success_difference,
        mcnemar_power,
    )
    from evalharness.stats.ratio import bootstrap_ratios, ratios

__all__ = [
    "RESAMPLES",
    "Z_95",
    "Interval",
    "bootstrap_mean",
    "bootstrap_ratios",
    "bootstrap_weighted_mean",
    "cohen_kappa",
    "detectable_mean_difference",
    "detectable_success_difference",
    "expected_best_of_k",
    "holm",
    "kappa_interval",
    "mcnemar_exact",
    "mcnemar_power",
    "newcombe_paired",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "rate_interval",
    "ratios",
    "score_mean",
    "wilson",
]

_MODULES = ("intervals", "agreement", "best_of_k", "paired", "power", "ratio")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = getattr(import_module(f"{__name__}.{module}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
