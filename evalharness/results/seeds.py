"""One configuration under several seeds: each seed's rates, their mean and spread. Numbers; `report` draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from evalharness.base.errors import UserError
from evalharness.results.repeats import join_repeats
from evalharness.results.score import HELD_OUT, MEASURES, family_score
from evalharness.results.scored_run import ScoredRun

SCHEMA = 1


@dataclass(frozen=True)
class SeedRow:
    """A rate of one family, or the held-out score; fractions 0..1."""

    family: str
    measure: str
    tasks: int
    """That every seed has played."""
    rates: tuple[float, ...]
    """In the order of the study's seeds."""
    mean: float
    sd: float | None
    """Standard deviation of the seeds' rates (n - 1): how far another seed moves; None with one seed."""
    ci95: tuple[float, float]
    """Of the mean, over tasks: the seeds are attempts at the same tasks."""


@dataclass(frozen=True)
class SeedStudy:
    model: str
    suite: str
    max_turns: int
    seeds: tuple[int, ...]
    titles: Mapping[str, str]
    rows: tuple[SeedRow, ...]
    notes: tuple[str, ...]

    def flat(self) -> list[dict[str, Any]]:
        """A flat row for each rate, a column for each seed."""
        return [
            {
                "family": row.family,
                "measure": row.measure,
                "tasks": row.tasks,
                **{f"seed_{seed}": rate for seed, rate in zip(self.seeds, row.rates, strict=True)},
                "mean": row.mean,
                "sd": row.sd,
                "ci95_low": row.ci95[0],
                "ci95_high": row.ci95[1],
            }
            for row in self.rows
        ]

    def to_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def seed_study(runs: Mapping[int, ScoredRun]) -> SeedStudy:
    """`runs`: seed -> its run. Raises UserError where they are not runs of one configuration."""
    seeds = tuple(sorted(runs))
    listed = [runs[seed] for seed in seeds]
    joined = join_repeats(listed)  # refuses runs that differ in more than their seed
    common = set.intersection(*(set(run.tasks) for run in listed))
    if not common:
        raise UserError("no task has been played with every seed yet; the same command continues")
    first = listed[0]
    rows = []
    for measure in MEASURES:
        for family in dict.fromkeys(run_score.family for run_score in first.scores):
            tasks = [task_id for task_id in common if first.tasks[task_id].family == family]
            if tasks:
                rows.append(_family_row(joined, listed, family, measure, tasks))
        if (held := _held_out_row(joined, listed, measure)) is not None:
            rows.append(held)
    notes = first.limited
    left = sum(len(run.tasks.keys() - common) for run in listed)
    if left:
        notes.append(f"{left} results of tasks that not every seed has played are left out")
    return SeedStudy(
        model=first.name,
        suite=first.suite,
        max_turns=first.max_turns,
        seeds=seeds,
        titles=first.titles,
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _family_row(
    joined: ScoredRun, runs: Sequence[ScoredRun], family: str, measure: str, tasks: Sequence[str]
) -> SeedRow:
    wanted = set(tasks)
    rates = tuple(fmean(getattr(run.tasks[task], measure) for task in sorted(wanted)) for run in runs)
    score = family_score([s for s in joined.scores if s.task_id in wanted])
    return _row(family, measure, len(wanted), rates, getattr(score, f"{measure}_rate_ci95"))


def _held_out_row(joined: ScoredRun, runs: Sequence[ScoredRun], measure: str) -> SeedRow | None:
    """None unless every seed has every held-out task."""
    score, *each = (run.held_out[0] for run in (joined, *runs))
    if score is None or None in each:
        return None
    rates = tuple(float(getattr(one, f"{measure}_rate")) for one in each)
    return _row(HELD_OUT, measure, score.n, rates, getattr(score, f"{measure}_rate_ci95"))


def _row(
    family: str, measure: str, tasks: int, rates: tuple[float, ...], ci95: tuple[float, float]
) -> SeedRow:
    return SeedRow(
        family, measure, tasks, rates, fmean(rates), stdev(rates) if len(rates) > 1 else None, ci95
    )
