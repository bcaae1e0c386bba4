"""Build the rows of a leaderboard from published methods and from own runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalharness import stats
from evalharness.base.errors import UserError, nearest
from evalharness.envs.base import MAX_TURNS, EnvSpec, PublishedTable
from evalharness.protocol.prompt import load_prompt
from evalharness.results.deviations import deviations
from evalharness.results.leaderboard.standings import OURS, Standing, Verification
from evalharness.results.published import DEMO, PublishedRow
from evalharness.results.score import (
    ESTIMATED,
    HELD_OUT,
    MEASURES,
    family_score,
    held_out_estimate,
    make_halted_line,
)
from evalharness.results.scored_run import ScoredRun
from evalharness.results.task_range import (
    PUBLISHED_SUITE,
    list_changed_families,
)
from evalharness.results.trainings import interval_of, trainings_line
from evalharness.suites.draws import expected_tasks


@dataclass(frozen=True)
class Benchmark:
    """The families of a leaderboard, with their numbers of tasks, titles, prompts, and published table."""

    sizes: Mapping[str, int]
    """Family -> number of tasks."""
    held_out: Mapping[str, int]
    titles: Mapping[str, str]
    prompts: Mapping[str, str]
    """Family -> SHA-256 of the harness's prompt file."""
    separate: frozenset[str] = frozenset()
    """Families with a separate leaderboard, outside the main table."""
    own: PublishedTable | None = None
    """Published results of the one family with a separate leaderboard; None: the main table."""
    max_turns: int = MAX_TURNS
    measures: Mapping[str, str] = field(default_factory=lambda: {measure: measure for measure in MEASURES})

    @property
    def suite(self) -> str:
        return self.own.suite if self.own else PUBLISHED_SUITE

    @property
    def suites(self) -> tuple[str, ...]:
        """Suites whose runs may be compared with the published rows."""
        return (self.suite, *(self.own.other_suites if self.own else ()))

    @classmethod
    def of(cls, specs: Mapping[str, EnvSpec], table: str | None = None) -> Benchmark:
        """Return the benchmark of the main table, or of the separate leaderboard `table`. Raise UserError if `table` is
        unknown."""
        separate = frozenset(family for family, spec in specs.items() if spec.own.published is not None)
        if table is not None:
            if table not in separate:
                raise UserError(f"--table {table}: no such table{nearest(table, sorted(separate))}")
            return cls._of_family(specs[table])
        sizes = {
            family: spec.suites.expected[PUBLISHED_SUITE]
            for family, spec in specs.items()
            if PUBLISHED_SUITE in spec.suites.expected
        }
        return cls(
            sizes=sizes,
            held_out={family: n for family, n in sizes.items() if specs[family].held_out},
            titles={family: spec.title for family, spec in specs.items()},
            prompts={family: load_prompt(spec).sha256 for family, spec in specs.items()},
            separate=separate,
        )

    @classmethod
    def _of_family(cls, spec: EnvSpec) -> Benchmark:
        assert spec.own.published is not None
        return cls(
            sizes={spec.family: expected_tasks(spec, spec.own.published.suite, 0, None)},
            held_out={},
            titles={spec.family: spec.title},
            prompts={spec.family: load_prompt(spec).sha256},
            own=spec.own.published,
            max_turns=MAX_TURNS,  # "max turn is 30 for all tasks" (AgentRefine)
            measures={"success": spec.own.scores.success, "progress": spec.own.scores.progress},
        )


def _held_out_mean(
    values: Mapping[str, float | None], measure: str, sizes: Mapping[str, int]
) -> float | None:
    """Return the mean over families, weighted by their numbers of tasks; None if a family has no value."""
    total = 0.0
    for family, n in sizes.items():
        value = values.get(f"{family}_{measure}")
        if value is None:
            return None
        total += n * value
    return total / sum(sizes.values()) if sizes else None


def _outcomes(rate: float | None, n: int) -> list[float]:
    """Return n values of 1 or 0 with the printed rate as mean. The number of ones is rounded to whole tasks."""
    solved = round((rate or 0.0) * n)
    return [1.0] * solved + [0.0] * (n - solved)


def make_published_row(row: PublishedRow, benchmark: Benchmark) -> Standing:
    own = benchmark.own
    [family, *_] = benchmark.sizes
    column_names = {column: f"{family}_{measure}" for measure, column in own.columns.items()} if own else {}
    values: dict[str, float | None] = {
        column_names.get(column, column): round(printed.value / 100, 6)
        for column, printed in row.numbers.items()
        if not own or column in column_names
    }
    intervals = {}
    for family, n in benchmark.sizes.items():
        rate = values.get(f"{family}_success")
        if rate is not None:
            intervals[f"{family}_success"] = stats.success_interval(round(rate * n), n)
    if benchmark.held_out:
        for measure in MEASURES:
            values[f"{HELD_OUT}_{measure}"] = _held_out_mean(values, measure, benchmark.held_out)
        if values[f"{HELD_OUT}_success"] is not None:
            intervals[f"{HELD_OUT}_success"] = stats.stratified_score(
                [_outcomes(values[f"{family}_success"], n) for family, n in benchmark.held_out.items()]
            )
    return Standing(
        name=row.names["method"],
        series=row.names.get("series", "published"),
        held_in=tuple(row.names.get("held_in", "").split()),
        values=values,
        ci95=intervals,
        suite=benchmark.suite,
        max_turns=benchmark.max_turns,
        measured=row.table == DEMO,
    )


def make_run_row(
    run: ScoredRun,
    label: str,
    prompts: Mapping[str, str],
    held_in: Sequence[str],
    verification: Verification | None = None,
) -> Standing:
    """Build the row of a run. `label`: the text that distinguishes this run from the other runs in the table."""
    manifest = run.manifest
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for family, scores in run.by_family.items():
        score = family_score(scores)
        given = score.list_given_fields()
        for measure in MEASURES:
            column, rate = f"{family}_{measure}", f"{measure}_rate"
            values[column] = getattr(score, rate)
            ends = getattr(score, f"{rate}_ci95")
            intervals[column] = interval_of(run, family, measure, getattr(score, rate), ends)
            given[f"{rate}_ci95"] = intervals[column]
    held_out, withheld = run.held_out
    estimate = None if held_out else held_out_estimate(run.by_family, manifest.subset, run.samples)
    scored = held_out or estimate
    for measure in MEASURES:
        column = f"{HELD_OUT}_{measure}"
        values[column] = getattr(scored, f"{measure}_rate") if scored else None
        if scored:
            rate, ends = (getattr(scored, f"{measure}_rate{part}") for part in ("", "_ci95"))
            intervals[column] = interval_of(run, HELD_OUT if held_out else ESTIMATED, measure, rate, ends)
    leaves = deviations(run.identity, prompts, run.titles, run.scores)
    return Standing(
        name=label,
        series=OURS,
        held_in=tuple(held_in),
        values=values,
        ci95=intervals,
        suite=run.suite,
        max_turns=run.max_turns,
        folder=str(run.folder),
        played=run.played,
        estimated=estimate is not None,
        labels=run.task_labels,
        deviations=leaves,
        notes=tuple(_notes(run, None if estimate else withheld, held_in)),
        verification=verification,
    )


def _notes(run: ScoredRun, withheld: str | None, held_in: Sequence[str]) -> list[str]:
    titles = run.titles
    notes = [line] if (line := trainings_line(run)) else []
    if ours := [titles.get(f, f) for f, labels in run.manifest.labels.items() if "ours" in labels]:
        notes.append(f"labels: ours for {', '.join(ours)} (progress there is not on the published scale)")
    if changed := list_changed_families(run.task_labels, titles):
        notes.append(f"data changed: the tasks of {changed} are not the published ones")
    if halted := sum(score.halted for score in run.scores):
        notes.append(make_halted_line(halted))
    for family, draw in sorted(run.manifest.draw.items()):
        notes.append(f"{titles.get(family, family)}: {draw.tasks} tasks drawn with seed {draw.seed}")
    if missing := run.incomplete:
        notes.append(f"incomplete: {missing}")
    if held_in:
        notes.append(f"trained on (as declared by --held-in): {', '.join(titles.get(f, f) for f in held_in)}")
    if withheld and run.manifest.held_out:
        notes.append(f"held-out score withheld: {withheld}")
    if run.perturbation:
        notes.append(f"perturbation {run.perturbation}")
    return notes
