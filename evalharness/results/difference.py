"""Test the difference between two runs in one score, over the tasks that both runs have played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalharness import stats
from evalharness.base.grouping import group_by_key
from evalharness.results.score import ESTIMATED, HELD_OUT, MEASURES, POOLED
from evalharness.results.scored_run import TaskScore

SIGNIFICANT = 0.05
SAME = 1e-9
"""Means whose difference is at most this value count as equal, because equal means may differ by rounding errors."""

Pair = tuple[TaskScore, TaskScore]
"""(score in the baseline, score in the other run) of one task."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between baseline and run in success or progress, for one score. Rates are fractions 0..1."""

    family: str
    """Name of the score: a family, `held_out`, `held_out_estimate` (estimated from the tasks of `--subset`), or
    `pooled` (the mean over all tasks of several families, if the held-out score is neither measured nor estimated)."""
    measure: str
    """`success` or `progress`."""
    n: int
    """Number of tasks that both runs have played."""
    baseline: float
    run: float
    difference: float
    """`run` minus `baseline`."""
    ci95: tuple[float, float]
    """The 95 % interval of `difference`; it excludes 0 if and only if `p` is below 0.05."""
    p: float
    test: str
    """`mcnemar`: McNemar's test, mid-p. `permutation`: sign flips of the paired differences, mid-p. `attempts`:
    permutation of attempts within tasks, if a task has more attempts in one run. `subset`: p from the interval of a
    score that is estimated from `--subset`. `trainings`: Student's t over training seeds."""
    p_holm: float
    """`p` adjusted over all tests of the command; see `adjust_p_values`."""
    wins: int
    ties: int
    losses: int
    detectable: float | None = None
    """Smallest true difference that this test detects with 80 % power at the 5 % level, before Holm's correction; None
    if it is unknown, or if the test cannot detect any difference."""
    kinds: int
    """Number of kinds of tasks (for example BabyAI's levels) among the paired tasks."""
    ci95_by_kind: tuple[float, float] | None = None
    """The 95 % interval with kinds of tasks as units instead of tasks. None if a family has one kind. Equal to `ci95`
    if every task is the only one of its kind."""
    p_by_kind: float | None = None
    """The p of Student's t test with kinds of tasks as units; it agrees with `ci95_by_kind`."""
    smallest_p_by_kind: float | None = None
    """The smallest `p_by_kind` that is possible with this number of kinds: its value if the run won every task."""
    standard_error_tasks: float | None = None
    """Part of the standard error that comes from the choice of tasks; None if a run has only one attempt per task."""
    standard_error_attempts_baseline: float | None = None
    """Part of the standard error that comes from the baseline's attempts; None if each task has only one attempt."""
    standard_error_attempts_run: float | None = None
    """Part of the standard error that comes from the run's attempts; None if each task has only one attempt."""

    @property
    def points(self) -> str:
        """The difference in percentage points with its interval: `+3.2 [0.1, 6.3]`."""
        low, high = (100 * end for end in self.ci95)
        return f"{100 * self.difference:+.1f} [{low:.1f}, {high:.1f}]"

    @property
    def tasks_needed(self) -> int | None:
        """Approximate number of tasks with which the test detects this difference with 80 % power at the 5 % level.
        None if it is above 100,000, and for the tests `trainings` and `subset`, whose error is not from tasks alone."""
        if not self.detectable or abs(self.difference) < SAME or self.test in ("trainings", "subset"):
            return None
        if self.test == "mcnemar":
            needed = stats.tasks_needed((self.wins + self.losses) / self.n, abs(self.difference))
        else:  # the standard error shrinks with the square root of the number of tasks
            needed = round(self.n * (self.detectable / self.difference) ** 2)
        return None if needed is None or needed > stats.MOST_TASKS else needed

    @property
    def tally(self) -> str:
        """Numbers of tasks won, tied and lost: `5/100/2`."""
        return f"{self.wins}/{self.ties}/{self.losses}"


def columns_of(prefix: str, d: Difference | None) -> dict[str, Any]:
    """Return the test as columns of a flat row. Without a test, all columns are None."""
    names = ("difference", "p", "p_holm", "wins", "ties", "losses")
    low, high = d.ci95 if d else (None, None)
    return {
        **{f"{prefix}_{name}": getattr(d, name, None) for name in names},
        f"{prefix}_difference_ci95_low": low,
        f"{prefix}_difference_ci95_high": high,
    }


def difference_of(family: str, measure: str, strata: Sequence[Sequence[Pair]]) -> Difference:
    values = [[(getattr(a, measure), getattr(b, measure)) for a, b in stratum] for stratum in strata]
    flat = [pair for stratum in values for pair in stratum]
    n = len(flat)
    deltas = [b - a for a, b in flat]
    wins, losses = sum(d > SAME for d in deltas), sum(d < -SAME for d in deltas)
    # McNemar's test needs 0 or 1 per task; a mean over several attempts can be a fraction.
    binary = measure == "success" and all(x in (0.0, 1.0) for pair in flat for x in pair)
    uneven = any(a.samples != b.samples for stratum in strata for a, b in stratum)
    by_stratum = [[b - a for a, b in stratum] for stratum in values]
    if uneven:
        attempts = [[pair[i].attempts[measure] for s in strata for pair in s] for i in (0, 1)]
        test, p = "attempts", stats.attempts_test(*attempts)
        detectable = stats.detectable_by_attempts(*attempts)
    else:
        test, p = "mcnemar" if binary else "permutation", stats.permutation_test(deltas)
        detectable = stats.detectable_difference(deltas)
    ci95 = stats.paired_interval(by_stratum, p)
    return Difference(
        family=family,
        measure=measure,
        n=n,
        baseline=sum(a for a, _ in flat) / n,
        run=sum(b for _, b in flat) / n,
        difference=sum(deltas) / n,
        ci95=ci95,
        p=p,
        test=test,
        p_holm=p,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        detectable=detectable,
        **_by_kind(strata, by_stratum, ci95, p),
        **_standard_errors(strata, by_stratum, measure),
    )


def estimate_difference(
    family: str, measure: str, strata: Sequence[Sequence[Pair]], subset: Mapping[str, int]
) -> Difference:
    """Estimate the difference in the held-out score from the tasks of a subset. `strata`: pairs of each family, ordered
    by difficulty. `subset`: task id -> number of tasks that it represents."""
    flat = [pair for stratum in strata for pair in stratum]
    of = sum(subset.values())
    baseline, run = (
        sum(subset[pair[i].task_id] * getattr(pair[i], measure) for pair in flat) / of for i in (0, 1)
    )
    deltas = [[getattr(b, measure) - getattr(a, measure) for a, b in stratum] for stratum in strata]
    ci95, p = stats.subset_difference(deltas, run - baseline, of)
    wins, losses = (sum(sign * d > SAME for listed in deltas for d in listed) for sign in (1, -1))
    return Difference(
        family=family,
        measure=measure,
        n=len(flat),
        baseline=baseline,
        run=run,
        difference=run - baseline,
        ci95=ci95,
        p=p,
        test="subset",
        p_holm=p,
        wins=wins,
        ties=len(flat) - wins - losses,
        losses=losses,
        kinds=len({a.kind for a, _ in flat}),
    )


def _by_kind(
    strata: Sequence[Sequence[Pair]], deltas: Sequence[Sequence[float]], ci95: tuple[float, float], p: float
) -> dict[str, Any]:
    kinds = [[a.kind for a, _ in stratum] for stratum in strata]
    count = sum(len(set(listed)) for listed in kinds)
    if count == sum(len(stratum) for stratum in strata):
        smallest = stats.mcnemar_midp(count, 0)
        return {"kinds": count, "ci95_by_kind": ci95, "p_by_kind": p, "smallest_p_by_kind": smallest}
    return {
        "kinds": count,
        "ci95_by_kind": stats.score_difference_by_kind(deltas, kinds),
        "p_by_kind": stats.difference_p_by_kind(deltas, kinds),
        "smallest_p_by_kind": stats.difference_p_by_kind([[1.0] * len(stratum) for stratum in deltas], kinds),
    }


def _standard_errors(
    strata: Sequence[Sequence[Pair]], deltas: Sequence[Sequence[float]], measure: str
) -> dict[str, Any]:
    """Split the standard error of a difference by its causes: choice of tasks, baseline's attempts, run's attempts."""
    parts = [
        stats.variance_components([[pair[i].attempts[measure] for pair in stratum] for stratum in strata])
        for i in (0, 1)
    ]
    baseline, run = (None if part is None else part.standard_error_runs for part in parts)
    between = None
    if baseline is not None and run is not None:
        between = stats.standard_error(deltas)
        between = max(0.0, between**2 - baseline**2 - run**2) ** 0.5
    return {
        "standard_error_tasks": between,
        "standard_error_attempts_baseline": baseline,
        "standard_error_attempts_run": run,
    }


def adjust_p_values(comparisons: Sequence[Sequence[Difference]]) -> list[list[Difference]]:
    """Apply Holm's correction to p. `comparisons`: the tests of each run against its baseline.

    There are three groups of tests: success in the main score (`headline`), progress in the main score, and families.
    Holm's correction is applied within each group, over all comparisons. Then every p of a comparison is raised to at
    least the p of success in its main score. So the chance of a false positive is 5 % (serial gatekeeping: Dmitrienko,
    Tamhane & Bretz, Multiple Testing Problems in Pharmaceutical Statistics (2010), section 5.2).
    """
    heads = [headline(tests) for tests in comparisons]

    def group(d: Difference, head: str) -> str:
        return d.measure if d.family == head else "families"

    groups = group_by_key(
        (group(d, head), d.p) for tests, head in zip(comparisons, heads, strict=True) for d in tests
    )
    holm = {name: iter(stats.holm(ps)) for name, ps in groups.items()}
    corrected = []
    for tests, head in zip(comparisons, heads, strict=True):
        own = [replace(d, p_holm=next(holm[group(d, head)])) for d in tests]
        least = next((d.p_holm for d in own if (d.family, d.measure) == (head, MEASURES[0])), 0.0)
        corrected.append([replace(d, p_holm=max(d.p_holm, least)) for d in own])
    return corrected


def headline(tests: Sequence[Difference]) -> str:
    """Return the name of the main score: `held_out`, else `held_out_estimate`, else `pooled`, else the only family."""
    families = [d.family for d in tests]
    return next((name for name in (HELD_OUT, ESTIMATED, POOLED) if name in families), families[0])
