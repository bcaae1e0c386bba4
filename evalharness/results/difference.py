"""One measure of one family in two runs over the same tasks: how large is the difference, and is it real?"""

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
"""Tolerance: means that are mathematically equal may differ in the last bits."""

Pair = tuple[TaskScore, TaskScore]
"""The same task in the baseline and in the other run."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One measure of one family (or of the held-out score), baseline against run. Fractions 0..1, -1..1."""

    family: str
    """A family; `held_out`; `held_out_estimate`: of the whole held-out score, from the tasks of `--subset`; `pooled`:
    every task of several families once, where there is neither."""
    measure: str
    """`success` or `progress`."""
    n: int
    """Paired tasks."""
    baseline: float
    run: float
    difference: float
    """run - baseline."""
    ci95: tuple[float, float]
    """Excludes 0 where `p` is below 0.05, and only there."""
    p: float
    test: str
    """`mcnemar`: mid-p; `permutation`: of the signs of the paired differences, mid-p; `attempts`: of the attempts
    within tasks, where a task has more of them in one run; `subset`: what the interval of an estimate leaves out where
    it ends at 0; `trainings`: Student's t over trainings, for means over several."""
    p_holm: float
    """`p` adjusted over all tests of the command, see `adjusted`."""
    wins: int
    ties: int
    losses: int
    detectable: float | None = None
    """The smallest true difference that this test finds with 80 % power at 5 % (before Holm); None: none is."""
    kinds: int
    """Number of kinds among the paired tasks."""
    ci95_by_kind: tuple[float, float] | None = None
    """A check of sensitivity, for tasks like these: whole kinds are the evidence. None where a family is all of one
    kind; as over tasks where every task is a kind of its own."""
    p_by_kind: float | None = None
    """Of the test that `ci95_by_kind` inverts: Student's t over kinds."""
    smallest_p_by_kind: float | None = None
    """`p_by_kind` if every task were won: few kinds can never say more."""
    standard_error_tasks: float | None = None
    """Of the difference, for other tasks and endless attempts; None where the attempts' part was not measured."""
    standard_error_attempts_baseline: float | None = None
    """Of the difference, for these tasks and as many attempts again in the baseline; None: one attempt each."""
    standard_error_attempts_run: float | None = None

    @property
    def points(self) -> str:
        """`+3.2 [0.1, 6.3]`."""
        low, high = (100 * end for end in self.ci95)
        return f"{100 * self.difference:+.1f} [{low:.1f}, {high:.1f}]"

    @property
    def tasks_needed(self) -> int | None:
        """About how many tasks would show this difference with 80 % power at 5 %, if it is the true one. None if tasks
        alone do not decide it (several trainings, an estimate), or above 100,000."""
        if not self.detectable or abs(self.difference) < SAME or self.test in ("trainings", "subset"):
            return None
        if self.test == "mcnemar":
            needed = stats.tasks_needed((self.wins + self.losses) / self.n, abs(self.difference))
        else:  # an error shrinks with the root of the number of tasks
            needed = round(self.n * (self.detectable / self.difference) ** 2)
        return None if needed is None or needed > stats.MOST_TASKS else needed

    @property
    def tally(self) -> str:
        """Tasks won, tied, lost: `5/100/2`."""
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
    # Of single attempts a task is solved or not; means over several are not binomial.
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
    """Of the whole held-out score. `strata`: families in the order of difficulty; `subset`: how many tasks each of
    theirs stands for."""
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
    """The variance components of a difference, apart."""
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


def adjusted(comparisons: Sequence[Sequence[Difference]]) -> list[list[Difference]]:
    """With Holm's correction. `comparisons`: the tests of each run against its baseline.

    Three groups of hypotheses, each corrected over all comparisons: success of the headline (`headline`), its progress,
    and the families. No test of a comparison has a p below that of its headline's success, so that the chance of any
    false star is that of the first group, 5 % (serial gatekeeping: Dmitrienko, Tamhane & Bretz, Multiple Testing
    Problems in Pharmaceutical Statistics (2010), section 5.2).
    """
    heads = [headline(tests) for tests in comparisons]

    def group(d: Difference, head: str) -> str:
        return d.measure if d.family == head else "families"

    groups = group_by_key(
        (group(d, head), d.p) for tests, head in zip(comparisons, heads, strict=True) for d in tests
    )
    holm = {name: iter(stats.holm(ps)) for name, ps in groups.items()}
    found = []
    for tests, head in zip(comparisons, heads, strict=True):
        own = [replace(d, p_holm=next(holm[group(d, head)])) for d in tests]
        least = next((d.p_holm for d in own if (d.family, d.measure) == (head, MEASURES[0])), 0.0)
        found.append([replace(d, p_holm=max(d.p_holm, least)) for d in own])
    return found


def headline(tests: Sequence[Difference]) -> str:
    """What a comparison is about first: the held-out score, else its estimate, else what is pooled, else the only
    family."""
    families = [d.family for d in tests]
    return next((name for name in (HELD_OUT, ESTIMATED, POOLED) if name in families), families[0])
