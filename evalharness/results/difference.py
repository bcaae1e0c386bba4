"""Test the difference between two runs in one measure of one family, over the same tasks."""

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
"""Tolerance: two equal means may differ by rounding errors."""

Pair = tuple[TaskScore, TaskScore]
"""The same task in the baseline and in the other run."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between baseline and run in one measure of one score. Fractions 0..1 or -1..1."""

    family: str
    """The score: a family; `held_out`; `held_out_estimate` (estimated from the tasks of `--subset`); or `pooled` (the
    mean over all tasks of several families, if there is no held-out score and no estimate)."""
    measure: str
    """`success` or `progress`."""
    n: int
    """Paired tasks."""
    baseline: float
    run: float
    difference: float
    """run - baseline."""
    ci95: tuple[float, float]
    """The interval excludes 0 if and only if `p` is below 0.05."""
    p: float
    test: str
    """`mcnemar`: McNemar's test, mid-p. `permutation`: sign flips of the paired differences, mid-p. `attempts`:
    permutation of attempts within tasks, if a task has more attempts in one run. `subset`: p follows from the interval
    of the estimate. `trainings`: Student's t over trainings, for means over several trainings."""
    p_holm: float
    """`p` adjusted over all tests of the command; see `adjust_p_values`."""
    wins: int
    ties: int
    losses: int
    detectable: float | None = None
    """Smallest true difference that this test detects with 80 % power at the 5 % level, before Holm's correction; None
    if the test detects no difference."""
    kinds: int
    """Number of kinds among the paired tasks."""
    ci95_by_kind: tuple[float, float] | None = None
    """Sensitivity check: the interval with kinds of tasks as units. None if a family has one kind. Equal to `ci95` if
    every task is the only one of its kind."""
    p_by_kind: float | None = None
    """The p that belongs to `ci95_by_kind`: Student's t over kinds."""
    smallest_p_by_kind: float | None = None
    """`p_by_kind` if the run won every task: no result with so few kinds can have a smaller p."""
    standard_error_tasks: float | None = None
    """Standard error of the difference from the choice of tasks. None if the part from attempts was not measured."""
    standard_error_attempts_baseline: float | None = None
    """Standard error of the difference if the baseline is played again on these tasks; None with one attempt each."""
    standard_error_attempts_run: float | None = None
    """Standard error of the difference if the run is played again on these tasks; None with one attempt each."""

    @property
    def points(self) -> str:
        """The difference in points with its interval: `+3.2 [0.1, 6.3]`."""
        low, high = (100 * end for end in self.ci95)
        return f"{100 * self.difference:+.1f} [{low:.1f}, {high:.1f}]"

    @property
    def tasks_needed(self) -> int | None:
        """Approximate number of tasks that detect this difference with 80 % power at the 5 % level. None if more tasks
        alone do not help (several trainings, an estimate), or if the number is above 100,000."""
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
    """Return the test as columns of a flat row; all are None if there is no test."""
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
    # With one attempt a task is solved or not; a mean over several attempts is not binomial.
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


def estimated_difference(
    family: str, measure: str, strata: Sequence[Sequence[Pair]], subset: Mapping[str, int]
) -> Difference:
    """Estimate the difference in the whole held-out score. `strata`: pairs of each family, ordered by difficulty.
    `subset`: task id -> number of tasks that it represents."""
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
    """Return the variance components of a difference separately, as standard errors."""
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

    There are three groups of hypotheses: success in the main score (`headline`), progress in the main score, and the
    families. Each group is corrected over all comparisons. No p of a comparison is below that of success in its main
    score. So the chance of any false positive is 5 %, that of the first group (serial gatekeeping: Dmitrienko,
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
    """Return the main score of a comparison: the held-out score, else its estimate, else the pooled score, else the
    only family."""
    families = [d.family for d in tests]
    return next((name for name in (HELD_OUT, ESTIMATED, POOLED) if name in families), families[0])
