"""The rows of a leaderboard: of a published method, and of a run of ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot
from typing import TYPE_CHECKING, Any

from envs.base import MAX_TURNS, EnvSpec
from evalharness import stats
from evalharness.analysis.completeness import Played, played
from evalharness.analysis.deviations import deviations
from evalharness.analysis.published import PublishedRow
from evalharness.analysis.score import family_score, group_by_family, held_out_score
from evalharness.analysis.scored_run import ScoredRun
from evalharness.analysis.task_range import (
    TaskRange,
    chance_corrected,
    corrected_interval,
    corrected_rates,
    load_ranges,
)
from evalharness.protocol.prompt import load_prompt

if TYPE_CHECKING:
    pass
from evalharness.analysis.score import HELD_OUT, MEASURES
from evalharness.analysis.standings import OURS, PUBLISHED_SUITE, SUBMITTED, Standing, Verification


@dataclass(frozen=True)
class Benchmark:
    """What a leaderboard must know of the installed environments: family -> tasks, held-out family -> tasks, names."""

    sizes: Mapping[str, int]
    held_out: Mapping[str, int]
    titles: Mapping[str, str]
    prompts: Mapping[str, str]
    """Family -> SHA-256 of its prompt file as it comes with the harness."""
    apart: frozenset[str] = frozenset()
    """Families that have a table of their own."""

    @classmethod
    def of(cls, specs: Mapping[str, EnvSpec]) -> Benchmark:
        """Of the published suite."""
        sizes = {
            family: spec.expected[PUBLISHED_SUITE]
            for family, spec in specs.items()
            if PUBLISHED_SUITE in spec.expected
        }
        return cls(
            sizes=sizes,
            held_out={family: n for family, n in sizes.items() if specs[family].held_out},
            titles={family: spec.title for family, spec in specs.items()},
            prompts={family: load_prompt(spec).sha256 for family, spec in specs.items()},
            apart=frozenset(family for family, spec in specs.items() if spec.published is not None),
        )


def published_apart(row: PublishedRow, spec: EnvSpec, n: int, max_turns: int) -> Standing:
    assert spec.published is not None
    values: dict[str, float | None] = {
        f"{spec.family}_{measure}": round(row.numbers[column].value / 100, 6)
        for measure, column in spec.published.columns.items()
        if column in row.numbers
    }
    success = values.get(f"{spec.family}_success")
    return Standing(
        name=row.names["method"],
        series="published",
        held_in=(),
        values=values,
        ci95={}
        if success is None
        else {f"{spec.family}_success": stats.success_interval(round(success * n), n)},
        chance_corrected={},
        chance_corrected_ci95={},
        suite=spec.published.suite,
        max_turns=max_turns,
    )


def _held_out_mean(
    values: Mapping[str, float | None], measure: str, sizes: Mapping[str, int]
) -> float | None:
    """Families weighted by their number of tasks; None unless all are there."""
    total = 0.0
    for family, n in sizes.items():
        value = values.get(f"{family}_{measure}")
        if value is None:
            return None
        total += n * value
    return total / sum(sizes.values()) if sizes else None


def published_row(row: PublishedRow, benchmark: Benchmark, ranges: Mapping[str, TaskRange]) -> Standing:
    values: dict[str, float | None] = {
        column: round(printed.value / 100, 6) for column, printed in row.numbers.items()
    }
    for measure in MEASURES:
        values[f"{HELD_OUT}_{measure}"] = _held_out_mean(values, measure, benchmark.held_out)
    intervals = {}
    for family, n in benchmark.sizes.items():
        rate = values.get(f"{family}_success")
        if rate is not None:
            intervals[f"{family}_success"] = stats.success_interval(round(rate * n), n)
    held_out, tasks = values[f"{HELD_OUT}_success"], sum(benchmark.held_out.values())
    if held_out is not None:
        intervals[f"{HELD_OUT}_success"] = stats.success_interval(round(held_out * tasks), tasks)
    corrected = _published_corrected(values, intervals, benchmark, ranges)
    return Standing(
        name=row.names["method"],
        series=row.names["series"],
        held_in=tuple(row.names["held_in"].split()),
        values=values,
        ci95=intervals,
        chance_corrected=corrected.rates,
        chance_corrected_ci95=corrected.ci95,
        suite=PUBLISHED_SUITE,
        max_turns=MAX_TURNS,
    )


@dataclass
class _Corrected:
    """Chance-corrected rates, gathered family by family, and what the held-out score's are made of."""

    rates: dict[str, float | None] = field(default_factory=dict)
    ci95: dict[str, tuple[float, float]] = field(default_factory=dict)
    floors: dict[str, float | None] = field(default_factory=dict)
    floor_errors: dict[str, float | None] = field(default_factory=dict)
    ceilings: dict[str, float | None] = field(default_factory=dict)

    def add(self, family: str, known: Sequence[TaskRange], rates: Mapping[str, Any], *, shown: bool) -> None:
        """`known`: the range of every task of the family. What is not `shown` counts in the held-out score only."""
        found = corrected_rates(known, rates)
        for measure in MEASURES:
            column, rate = f"{family}_{measure}", f"{measure}_rate"
            self.floors[column], self.ceilings[column] = found["floor"][rate], found["ceiling"][rate]
            self.floor_errors[column] = found["floor_se"][rate]
            self.rates[column] = found["chance_corrected"][rate] if shown else None
            if shown and (limits := found["chance_corrected_ci95"][rate]):
                self.ci95[column] = limits

    def add_held_out(
        self,
        values: Mapping[str, float | None],
        intervals: Mapping[str, tuple[float, float]],
        sizes: Mapping[str, int],
        floor_attempts: int,
    ) -> None:
        for measure in MEASURES:
            score, floor, ceiling = (
                _held_out_mean(each, measure, sizes) for each in (values, self.floors, self.ceilings)
            )
            column = f"{HELD_OUT}_{measure}"
            self.rates[column] = None
            if score is None or floor is None or ceiling is None:
                continue
            self.rates[column] = chance_corrected(score, floor, ceiling)
            errors = [self.floor_errors[f"{family}_{measure}"] for family in sizes]
            if None not in errors:
                parts = [n * (e or 0.0) for n, e in zip(sizes.values(), errors, strict=True)]
                error = hypot(*parts) / sum(sizes.values())
                limits = corrected_interval(
                    score, intervals.get(column), floor, error, ceiling, floor_attempts
                )
                if limits:
                    self.ci95[column] = limits


def _published_corrected(
    values: Mapping[str, float | None],
    intervals: Mapping[str, tuple[float, float]],
    benchmark: Benchmark,
    ranges: Mapping[str, TaskRange],
) -> _Corrected:
    """For families whose ranges are complete, by the published labels where they are public.

    Where they are not, floor and ceiling by ours count in the held-out score (Jericho: 20 of 282 tasks), but the
    family itself gets no corrected rate: the two scales differ.
    """
    corrected = _Corrected()
    for family, n in benchmark.sizes.items():
        rows = [row for task_id, row in ranges.items() if task_id.split("/")[0] == family]
        if len(rows) != n:
            continue
        rates: dict[str, Any] = {f"{m}_rate": values.get(f"{family}_{m}") for m in MEASURES}
        rates["success_rate_ci95"] = intervals.get(f"{family}_success")
        corrected.add(family, rows, rates, shown=all(row.labels == "official" for row in rows))
    corrected.add_held_out(values, intervals, benchmark.held_out, _attempts(ranges, benchmark.held_out))
    return corrected


def _attempts(ranges: Mapping[str, TaskRange], families: Iterable[str]) -> int:
    return sum(row.floor_samples for id_, row in ranges.items() if id_.split("/")[0] in families)


def own_row(
    run: ScoredRun,
    label: str,
    prompts: Mapping[str, str],
    held_in: Sequence[str],
    verification: Verification | None = None,
) -> Standing:
    """`label`: what tells the run from the others of the table."""
    manifest = run.manifest
    samples = int(run.config["samples"])
    groups = group_by_family(run.scores)
    ranges = load_ranges(manifest["suite"], run.config["suite_seed"])
    limits = run.turn_limits
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    corrected = _Corrected()
    for family, scores in groups.items():
        score = family_score(scores)
        rows = [ranges.get(s.task_id) for s in scores]
        same = all(
            r is not None and r.task_hash == s.task_hash and r.max_turns == limits[family]
            for r, s in zip(rows, scores, strict=True)
        )
        if same:
            corrected.add(family, [r for r in rows if r is not None], score, shown=True)
        for measure in MEASURES:
            column, rate = f"{family}_{measure}", f"{measure}_rate"
            values[column] = score[rate]
            intervals[column] = score[f"{rate}_ci95"]
    held_out, withheld = held_out_score(groups, manifest["held_out"], samples)
    for measure in MEASURES:
        column = f"{HELD_OUT}_{measure}"
        values[column] = held_out[f"{measure}_rate"] if held_out else None
        if held_out:
            intervals[column] = held_out[f"{measure}_rate_ci95"]
    if held_out:
        sizes = manifest["held_out"]
        corrected.add_held_out(values, intervals, sizes, _attempts(ranges, sizes))
    parts = {family: played(groups.get(family, ()), n, samples) for family, n in manifest["expected"].items()}
    leaves = deviations(manifest["identity"], prompts, run.titles)
    return Standing(
        name=label,
        series=SUBMITTED if run.submitted else OURS,
        held_in=tuple(held_in),
        values=values,
        ci95=intervals,
        chance_corrected=corrected.rates,
        chance_corrected_ci95=corrected.ci95,
        suite=run.suite,
        max_turns=run.max_turns,
        folder=str(run.folder),
        played=parts,
        labels=manifest["labels"],
        deviations=leaves,
        notes=tuple(_notes(run, parts, withheld, held_in)),
        verification=verification,
        submitter=run.submitted.submitter if run.submitted else None,
        site=run.submitted.site if run.submitted else None,
    )


def _notes(
    run: ScoredRun, parts: Mapping[str, Played], withheld: str | None, held_in: Sequence[str]
) -> list[str]:
    titles = run.titles
    notes = []
    if ours := [titles.get(f, f) for f, labels in run.manifest["labels"].items() if "ours" in labels]:
        notes.append(f"labels: ours for {', '.join(ours)} (progress there is not on the published scale)")
    for family, draw in sorted(run.manifest.get("draw", {}).items()):
        notes.append(f"{titles.get(family, family)}: {draw['tasks']} tasks drawn with seed {draw['seed']}")
    if partial := [f"{titles.get(f, f)} {part.described}" for f, part in parts.items() if not part.complete]:
        notes.append(f"not the whole family: {', '.join(partial)}")
    if held_in:
        notes.append(f"held-in as declared: {', '.join(titles.get(f, f) for f in held_in)}")
    if withheld and run.manifest["held_out"]:
        notes.append(f"held-out score withheld: {withheld}")
    if run.perturbation:
        notes.append(f"perturbation {run.perturbation}")
    return notes
