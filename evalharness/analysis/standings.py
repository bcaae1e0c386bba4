"""The leaderboard: published rows and our runs in one table. Numbers only; `report` draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.base import MAX_TURNS, EnvSpec
from evalharness import stats
from evalharness.analysis.completeness import Played, played
from evalharness.analysis.deviations import deviations
from evalharness.analysis.published import MAIN, PublishedRow, family_columns, load_table
from evalharness.analysis.score import family_score, group_by_family, held_out_score
from evalharness.analysis.scored_run import ScoredRun, require_same, require_same_turns
from evalharness.analysis.task_range import (
    TaskRange,
    chance_corrected,
    corrected_interval,
    corrected_rates,
    load_ranges,
)
from evalharness.errors import UserError, nearest
from evalharness.protocol.prompt import load_prompt
from evalharness.suites.draws import expected_tasks

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
HELD_OUT = "held_out"
MEASURES = ("success", "progress")
PUBLISHED_SUITE = "agentboard"
OURS = "our runs"


@dataclass(frozen=True)
class Standing:
    """A row. Columns are FAMILY_success, FAMILY_progress, held_out_success, held_out_progress; fractions 0..1."""

    name: str
    series: str
    """The base model of a published row; `our runs` for a run folder."""
    held_in: tuple[str, ...]
    """Families that the method's training data was sampled from: as published, or as the user declares of a run."""
    values: Mapping[str, float | None]
    ci95: Mapping[str, tuple[float, float]]
    """Of a published row for success alone: derived from the printed rate (of the held-out score: from the
    printed rates of its families) and the number of tasks."""
    chance_corrected: Mapping[str, float | None]
    """0 is what chance reaches, 1 what the best known plans reach; None where no floor and ceiling are stored."""
    chance_corrected_ci95: Mapping[str, tuple[float, float]]
    """They hold the floor's own error, too: it was measured with a few attempts a task."""
    suite: str
    max_turns: int
    folder: str | None = None
    """None for a published row."""
    played: Mapping[str, Played] | None = None
    """Family -> how much of it a run has played."""
    labels: Mapping[str, str] | None = None
    """Family -> who wrote its labels, of a run."""
    deviations: tuple[str, ...] = ()
    """How a run leaves the protocol of the other rows, prompts say, and yet may stand beside them."""
    notes: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        return self.folder is not None

    def has_own_labels(self, column: str) -> bool:
        """The column's family is scored by labels of this project: not on the published scale."""
        return "ours" in (self.labels or {}).get(column.rpartition("_")[0], "")

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Families of which a run has played a part only: no rate of theirs is the family's."""
        return tuple(f for f, part in (self.played or {}).items() if not part.complete)

    def is_incomplete(self, column: str) -> bool:
        """A part of the column's family stands there for the whole."""
        return column.rpartition("_")[0] in self.incomplete


@dataclass(frozen=True)
class Leaderboard:
    """Rows grouped by series, or sorted by a column."""

    titles: Mapping[str, str]
    """Family -> the name a person reads, in the order of the columns."""
    standings: tuple[Standing, ...]
    sorted_by: str | None
    held_out: tuple[str, ...]
    """The families of the held-out score; none: the table has no such column."""
    measures: Mapping[str, str] = field(default_factory=lambda: {measure: measure for measure in MEASURES})
    """`success` and `progress` -> what the table calls them."""
    notes: tuple[str, ...] = ()
    """What has to be known to read the table as a whole."""

    @property
    def groups(self) -> tuple[str, ...]:
        """What has columns: the families, and `held_out` where there is such a score."""
        return (*self.titles, HELD_OUT) if self.held_out else tuple(self.titles)

    def is_held_in(self, standing: Standing, column: str) -> bool:
        """The method was trained on tasks of the column's family, or of one of the held-out score's."""
        family = column.rpartition("_")[0]
        return not set(standing.held_in).isdisjoint(self.held_out if family == HELD_OUT else (family,))

    @property
    def columns(self) -> list[str]:
        return [f"{family}_{measure}" for family in self.groups for measure in MEASURES]

    def rows(self) -> list[dict[str, Any]]:
        """A flat row a model; fractions 0..1, None where there is none."""
        rows = []
        for standing in self.standings:
            row: dict[str, Any] = {
                "series": standing.series,
                "name": standing.name,
                "source": "run" if standing.ours else "published",
                "folder": standing.folder,
                "suite": standing.suite,
                "max_turns": standing.max_turns,
                "held_in": " ".join(standing.held_in),
                "labels": _pairs(standing.labels or {}),
                "played": _pairs(
                    {f: f"{part.tasks}/{part.of}" for f, part in (standing.played or {}).items()}
                ),
                "samples": max((part.samples for part in (standing.played or {}).values()), default=None),
                "incomplete": " ".join(standing.incomplete),
                "deviations": "; ".join(standing.deviations),
                "notes": "; ".join(standing.notes),
                "ci95_from": "episodes" if standing.ours else "printed rates",
            }
            for column in self.columns:
                low, high = standing.ci95.get(column, (None, None))
                row[column] = standing.values.get(column)
                row[f"{column}_ci95_low"], row[f"{column}_ci95_high"] = low, high
                row[f"{column}_chance_corrected"] = standing.chance_corrected.get(column)
                low, high = standing.chance_corrected_ci95.get(column, (None, None))
                row[f"{column}_chance_corrected_ci95_low"] = low
                row[f"{column}_chance_corrected_ci95_high"] = high
            rows.append(row)
        return rows

    def frame(self) -> pd.DataFrame:
        """`rows` as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "families": dict(self.titles),
            "sorted_by": self.sorted_by,
            **({"notes": list(self.notes), "measures": dict(self.measures)} if self.notes else {}),
            "rows": [
                asdict(standing) | {"incomplete": list(standing.incomplete)} for standing in self.standings
            ],
        }


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


def make_leaderboard(
    runs: Sequence[ScoredRun],
    benchmark: Benchmark,
    *,
    published: bool = True,
    sort: str | None = None,
    held_in: Mapping[Path, Sequence[str]] | None = None,
) -> Leaderboard:
    """`held_in`: folder of a run -> families that its model was trained on, as the user declares.

    Raises UserError where rows do not belong in one table, or `sort` or a declared family is none.
    """
    for run in runs:
        if benchmark.apart.issuperset(run.manifest["counts"]):
            family = min(run.manifest["counts"])
            raise UserError(
                f"{run.folder} has a table of its own: evalharness leaderboard --table {family} RUN"
            )
    require_one_table(list(runs), published)
    rows = load_table(MAIN) if published else []
    ranges = load_ranges(PUBLISHED_SUITE)
    standings = [_published(row, benchmark, ranges) for row in rows]
    declared = held_in or {}
    standings += [_ours(run, benchmark.prompts, declared.get(run.folder, ())) for run in runs]
    listed = {family for run in runs for family in run.manifest["counts"]} - benchmark.apart
    order = [*family_columns(rows), *sorted(listed - set(family_columns(rows)))]
    names = dict(benchmark.titles)
    for run in runs:
        names |= run.titles
    for family in {family for families in declared.values() for family in families}:
        if family not in order:
            raise UserError(f"--held-in {family}: no such family{nearest(family, order)}")
    board = Leaderboard(
        titles={family: names.get(family, family) for family in order},
        standings=tuple(standings),
        sorted_by=None,
        held_out=tuple(benchmark.held_out),
    )
    return _sorted(board, sort) if sort else board


def own_table(specs: Mapping[str, EnvSpec], family: str) -> EnvSpec:
    """The family of that name, if it has a table of its own; else raises UserError."""
    apart = sorted(name for name, spec in specs.items() if spec.published is not None)
    if family not in apart:
        raise UserError(f"--table {family}: no such table{nearest(family, apart)}")
    return specs[family]


def make_own_leaderboard(
    runs: Sequence[ScoredRun], spec: EnvSpec, *, published: bool = True, sort: str | None = None
) -> Leaderboard:
    """The table of a family that has published results of its own. Raises UserError as `make_leaderboard` does."""
    table = spec.published
    if table is None:
        raise UserError(f"--table {spec.family}: {spec.title} is in the main table; leave --table out")
    runs = [_only(run, spec.family) for run in runs]
    rows = load_table(table.name) if published else []
    if published:
        for run in runs:
            if run.manifest["suite"] != table.suite or run.perturbation is not None:
                played = f"suite {run.suite}, perturbation {run.perturbation or 'none'}"
                raise UserError(
                    f"{run.folder} was played on {played}, the published rows on {table.suite} without any; leave it "
                    "out, or rank runs alone with --no-published"
                )
    else:
        require_one_table(runs, published=False)
    n = expected_tasks(spec, table.suite, 0, None)
    limit = min(spec.max_turns, MAX_TURNS)
    prompts = {spec.family: load_prompt(spec).sha256}
    board = Leaderboard(
        titles={spec.family: spec.title},
        standings=(
            *(_published_apart(row, spec, n, limit) for row in rows),
            *(_ours(run, prompts, ()) for run in runs),
        ),
        sorted_by=None,
        held_out=(),
        measures={"success": spec.scores.success, "progress": spec.scores.progress},
        notes=(table.note,) if published and table.note else (),
    )
    return _sorted(board, sort) if sort else board


def _only(run: ScoredRun, family: str) -> ScoredRun:
    """The run as if it had played that family alone."""
    if not (scores := tuple(score for score in run.scores if score.family == family)):
        raise UserError(f"{run.folder} has played nothing of {family}; leave it out")
    parts = ("counts", "expected", "titles", "labels")
    kept = {part: {family: run.manifest[part][family]} for part in parts}
    kept["draw"] = {f: draw for f, draw in run.manifest.get("draw", {}).items() if f == family}
    return replace(run, scores=scores, manifest={**run.manifest, **kept, "held_out": {}})


def _published_apart(row: PublishedRow, spec: EnvSpec, n: int, max_turns: int) -> Standing:
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


def require_one_table(runs: list[ScoredRun], published: bool) -> None:
    """Raises UserError where runs are not of one protocol, or (`published`) not of the published rows'."""
    if not published:
        if not runs:
            raise UserError("--no-published leaves nothing: name a run folder")
        advice = "one table holds runs of one protocol only"
        require_same(runs, "suite", lambda run: run.suite, advice)
        require_same_turns(runs, advice)
        require_same(runs, "action interface", lambda run: run.action_interface, advice)
        require_same(runs, "perturbation", lambda run: run.perturbation or "none", advice)
        return
    for run in runs:
        why = None
        if run.manifest["suite"] != PUBLISHED_SUITE:
            why = f"was played on suite {run.suite}, the published rows on {PUBLISHED_SUITE}"
        elif run.max_turns != MAX_TURNS:
            why = f"had at most {run.max_turns} turns, the published rows {MAX_TURNS}"
        elif run.action_interface != "react":
            why = "acts by tool calls, the published rows by lines of text"
        elif run.perturbation is not None:
            why = f"was played under perturbation {run.perturbation}, the published rows under none"
        if why:
            raise UserError(f"{run.folder} {why}; leave it out, or rank runs alone with --no-published")


def _sorted(board: Leaderboard, column: str) -> Leaderboard:
    if column not in board.columns:
        raise UserError(f"--sort {column}: no such column{nearest(column, board.columns)}")

    def key(standing: Standing) -> tuple[bool, bool, float]:
        # A part of a family is no better than the whole of it, whatever its rate.
        value = standing.values.get(column)
        return value is not None, not standing.is_incomplete(column), value or 0.0

    ordered = sorted(board.standings, key=key, reverse=True)
    return replace(board, standings=tuple(ordered), sorted_by=column)


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


def _published(row: PublishedRow, benchmark: Benchmark, ranges: Mapping[str, TaskRange]) -> Standing:
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


def _ours(run: ScoredRun, prompts: Mapping[str, str], held_in: Sequence[str]) -> Standing:
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
        name=run.name,
        series=OURS,
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


def _pairs(values: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())
