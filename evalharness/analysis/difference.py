"""One measure of one family in two runs over the same tasks: how large is the difference, and is it real?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalharness import stats
from evalharness.analysis.scored_run import TaskScore

SIGNIFICANT = 0.05
SAME = 1e-9
"""Means over samples that are equal on paper may differ in the last bits."""

Pair = tuple[TaskScore, TaskScore]
"""The same task in the baseline and in the other run."""


@dataclass(frozen=True)
class Difference:
    """One measure of one family (or of the held-out score), baseline against run. Fractions 0..1, -1..1."""

    family: str
    """A family, or `held_out`."""
    measure: str
    """`success` or `progress`."""
    n: int
    """Paired tasks."""
    baseline: float
    run: float
    difference: float
    """run - baseline."""
    ci95: tuple[float, float]
    interval: str
    """`newcombe`: Newcombe's method 10; `score`: score interval of the differences, within families."""
    p: float
    test: str
    """`mcnemar`: exact; `permutation`: of the signs of the paired differences; `attempts`: of the attempts within
    tasks, where a task has more of them in one run."""
    p_holm: float
    """Adjusted over all tests that were asked for at once."""
    wins: int
    ties: int
    losses: int
    detectable: float | None
    """The smallest true difference that this test finds with 80 % power at 5 % (before Holm); None: none is."""
    kinds: int
    """Kinds that the paired tasks are of."""
    ci95_by_kind: tuple[float, float] | None
    """The interval for tasks like these: whole kinds are the evidence. None where a family is all of one kind."""
    p_by_kind: float | None
    test_by_kind: str | None
    """`permutation`: of the signs of the kinds' sums; `t`: Student's over kinds, of fewer than six of them or after
    `attempts`; the test of the tasks where every task is a kind of its own."""
    p_by_kind_holm: float | None
    cautious: str
    """`tasks` or `kinds`: whose p and interval are printed. `kinds` where they alone find no significance."""
    standard_error_tasks: float | None
    """Of the difference, for other tasks and endless attempts; None where the attempts' part was not measured."""
    standard_error_attempts_baseline: float | None
    """Of the difference, for these tasks and as many attempts again in the baseline; None: one attempt each."""
    standard_error_attempts_run: float | None

    @property
    def shown(self) -> tuple[float, float, tuple[float, float]]:
        """(p, p after Holm, interval) of the `cautious` question."""
        if self.cautious == "tasks":
            return self.p, self.p_holm, self.ci95
        assert self.p_by_kind is not None
        assert self.p_by_kind_holm is not None
        assert self.ci95_by_kind is not None
        return self.p_by_kind, self.p_by_kind_holm, self.ci95_by_kind


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
    if binary:
        both = sum(a == b == 1.0 for a, b in flat)
        interval, ci95 = "newcombe", stats.newcombe_paired(both, wins, losses, n - both - wins - losses)
    else:
        interval, ci95 = "score", stats.score_difference(by_stratum)
    if uneven:
        attempts = [[pair[i].attempts[measure] for s in strata for pair in s] for i in (0, 1)]
        test, p = "attempts", stats.attempts_test(*attempts)
        detectable = stats.detectable_mean_difference(deltas)
    elif binary:
        test, p = "mcnemar", stats.mcnemar_exact(wins, losses)
        detectable = stats.detectable_success_difference(n, (wins + losses) / n)
    else:
        test, p = "permutation", stats.permutation_test(deltas)
        detectable = stats.detectable_mean_difference(deltas)
    return Difference(
        family=family,
        measure=measure,
        n=n,
        baseline=sum(a for a, _ in flat) / n,
        run=sum(b for _, b in flat) / n,
        difference=sum(deltas) / n,
        ci95=ci95,
        interval=interval,
        p=p,
        test=test,
        p_holm=p,
        wins=wins,
        ties=n - wins - losses,
        losses=losses,
        detectable=detectable,
        **_by_kind(strata, by_stratum, ci95, p, test),
        p_by_kind_holm=None,
        cautious="tasks",
        **_standard_errors(strata, by_stratum, measure),
    )


def _by_kind(
    strata: Sequence[Sequence[Pair]],
    deltas: Sequence[Sequence[float]],
    ci95: tuple[float, float],
    p: float,
    test: str,
) -> dict[str, Any]:
    kinds = [[a.kind for a, _ in stratum] for stratum in strata]
    count = sum(len(set(listed)) for listed in kinds)
    if count == sum(len(stratum) for stratum in strata):
        return {"kinds": count, "ci95_by_kind": ci95, "p_by_kind": p, "test_by_kind": test}
    interval = stats.score_difference_by_kind(deltas, kinds)
    found = stats.difference_test_by_kind(deltas, kinds, symmetric=test != "attempts")
    p_by_kind, test_by_kind = found or (None, None)
    return {"kinds": count, "ci95_by_kind": interval, "p_by_kind": p_by_kind, "test_by_kind": test_by_kind}


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


def adjusted(differences: Sequence[Difference]) -> list[Difference]:
    """With Holm's correction of both questions, and which of them is the cautious one."""
    by_task = stats.holm([d.p for d in differences])
    by_kind = iter(stats.holm([d.p_by_kind for d in differences if d.p_by_kind is not None]))
    found = []
    for d, p_holm in zip(differences, by_task, strict=True):
        kind_holm = None if d.p_by_kind is None else next(by_kind)
        found.append(replace(d, p_holm=p_holm, p_by_kind_holm=kind_holm))
    return [replace(d, cautious=_cautious(d)) for d in found]


def _cautious(d: Difference) -> str:
    """`kinds` where the kinds alone find no significance: after Holm first, for that is what the table marks."""
    for tasks, kinds in ((d.p_holm, d.p_by_kind_holm), (d.p, d.p_by_kind)):
        if kinds is not None and (tasks < SIGNIFICANT) != (kinds < SIGNIFICANT):
            return "kinds" if kinds > tasks else "tasks"
    return "tasks"
