"""The leaderboard: published rows and our runs in one table. Numbers only; `report` draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from envs.base import EnvSpec
from evalharness import stats
from evalharness.analysis.published import MAIN, PublishedRow, family_columns, load_table
from evalharness.analysis.reference import (
    MAX_TURNS,
    TaskReference,
    chance_corrected,
    corrected_rates,
    family_reference,
    load_reference,
)
from evalharness.analysis.score import family_score, group_by_family, held_out_score
from evalharness.analysis.scored_run import ScoredRun, require_same, require_same_turns
from evalharness.draws import expected_tasks
from evalharness.errors import UserError
from evalharness.suites.selection import nearest

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
    """Families that the method's training data was sampled from, as far as published."""
    values: Mapping[str, float | None]
    ci95: Mapping[str, tuple[float, float]]
    """Of a published row for success alone (Wilson's, from the printed rate and the number of tasks)."""
    chance_corrected: Mapping[str, float | None]
    """0 is what chance reaches, 1 what the best known plans reach; None where no reference is stored."""
    suite: str
    max_turns: int
    folder: str | None = None
    """None for a published row."""
    played: Mapping[str, tuple[int, int]] | None = None
    """Family -> (episodes played, episodes of the whole family), of a run."""
    labels: Mapping[str, str] | None = None
    """Family -> who wrote its labels, of a run."""
    notes: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        return self.folder is not None


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
                "played": _pairs({f: f"{n}/{of}" for f, (n, of) in (standing.played or {}).items()}),
                "notes": "; ".join(standing.notes),
            }
            for column in self.columns:
                low, high = standing.ci95.get(column, (None, None))
                row[column] = standing.values.get(column)
                row[f"{column}_ci95_low"], row[f"{column}_ci95_high"] = low, high
                row[f"{column}_chance_corrected"] = standing.chance_corrected.get(column)
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
            "rows": [asdict(standing) for standing in self.standings],
        }


@dataclass(frozen=True)
class Benchmark:
    """What a leaderboard must know of the installed environments: family -> tasks, held-out family -> tasks, names."""

    sizes: Mapping[str, int]
    held_out: Mapping[str, int]
    titles: Mapping[str, str]
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
            apart=frozenset(family for family, spec in specs.items() if spec.published is not None),
        )


def make_leaderboard(
    runs: Sequence[ScoredRun],
    benchmark: Benchmark,
    *,
    published: bool = True,
    sort: str | None = None,
) -> Leaderboard:
    """Raises UserError where rows do not belong in one table, or `sort` is no column."""
    for run in runs:
        if benchmark.apart.issuperset(run.manifest["counts"]):
            family = min(run.manifest["counts"])
            raise UserError(
                f"{run.folder} has a table of its own: evalharness leaderboard --table {family} RUN"
            )
    require_one_table(list(runs), published)
    rows = load_table(MAIN) if published else []
    reference = load_reference(PUBLISHED_SUITE)
    standings = [_published(row, benchmark, reference) for row in rows]
    standings += [_ours(run) for run in runs]
    listed = {family for run in runs for family in run.manifest["counts"]} - benchmark.apart
    order = [*family_columns(rows), *sorted(listed - set(family_columns(rows)))]
    names = dict(benchmark.titles)
    for run in runs:
        names |= run.titles
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
                told = f"suite {run.suite}, perturbation {run.perturbation or 'none'}"
                raise UserError(
                    f"{run.folder} was played on {told}, the published rows on {table.suite} without any; leave it "
                    "out, or rank runs alone with --no-published"
                )
    else:
        require_one_table(runs, published=False)
    n = expected_tasks(spec, table.suite, 0, None)
    limit = min(spec.max_turns, MAX_TURNS)
    board = Leaderboard(
        titles={spec.family: spec.title},
        standings=(*(_published_apart(row, spec, n, limit) for row in rows), *map(_ours, runs)),
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
        ci95={} if success is None else {f"{spec.family}_success": stats.wilson(round(success * n), n)},
        chance_corrected={},
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
        require_same(runs, "perturbation", lambda run: run.perturbation or "none", advice)
        return
    for run in runs:
        why = None
        if run.manifest["suite"] != PUBLISHED_SUITE:
            why = f"was played on suite {run.suite}, the published rows on {PUBLISHED_SUITE}"
        elif run.max_turns != MAX_TURNS:
            why = f"had at most {run.max_turns} turns, the published rows {MAX_TURNS}"
        elif run.perturbation is not None:
            why = f"was played under perturbation {run.perturbation}, the published rows under none"
        if why:
            raise UserError(f"{run.folder} {why}; leave it out, or rank runs alone with --no-published")


def _sorted(board: Leaderboard, column: str) -> Leaderboard:
    if column not in board.columns:
        raise UserError(f"--sort {column}: no such column{nearest(column, board.columns)}")

    def key(standing: Standing) -> float:
        value = standing.values.get(column)
        return -1.0 if value is None else value

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


def _published(row: PublishedRow, benchmark: Benchmark, reference: Mapping[str, TaskReference]) -> Standing:
    values: dict[str, float | None] = {
        column: round(printed.value / 100, 6) for column, printed in row.numbers.items()
    }
    for measure in MEASURES:
        values[f"{HELD_OUT}_{measure}"] = _held_out_mean(values, measure, benchmark.held_out)
    intervals = {}
    for family, n in benchmark.sizes.items():
        rate = values.get(f"{family}_success")
        if rate is not None:
            intervals[f"{family}_success"] = stats.wilson(round(rate * n), n)
    return Standing(
        name=row.names["method"],
        series=row.names["series"],
        held_in=tuple(row.names["held_in"].split()),
        values=values,
        ci95=intervals,
        chance_corrected=_published_corrected(values, benchmark, reference),
        suite=PUBLISHED_SUITE,
        max_turns=MAX_TURNS,
    )


def _published_corrected(
    values: Mapping[str, float | None], benchmark: Benchmark, reference: Mapping[str, TaskReference]
) -> dict[str, float | None]:
    """For families whose reference is complete, by the published labels where they are public.

    Where they are not, floor and ceiling by ours count in the held-out score (Jericho: 20 of 282 tasks), but the
    family itself gets no corrected rate: the two scales differ.
    """
    corrected: dict[str, float | None] = {}
    floors: dict[str, float | None] = {}
    ceilings: dict[str, float | None] = {}
    for family, n in benchmark.sizes.items():
        rows = [row for task_id, row in reference.items() if task_id.split("/")[0] == family]
        if len(rows) != n:
            continue
        public = all(row.labels == "official" for row in rows)
        rates = {f"{m}_rate": values.get(f"{family}_{m}") for m in MEASURES}
        result = corrected_rates(rows, rates)
        for measure in MEASURES:
            column = f"{family}_{measure}"
            corrected[column] = result["chance_corrected"][f"{measure}_rate"] if public else None
            floors[column] = result["floor"][f"{measure}_rate"]
            ceilings[column] = result["ceiling"][f"{measure}_rate"]
    return corrected | _held_out_corrected(values, floors, ceilings, benchmark.held_out)


def _held_out_corrected(
    values: Mapping[str, float | None],
    floors: Mapping[str, float | None],
    ceilings: Mapping[str, float | None],
    sizes: Mapping[str, int],
) -> dict[str, float | None]:
    corrected: dict[str, float | None] = {}
    for measure in MEASURES:
        score, floor, ceiling = (_held_out_mean(each, measure, sizes) for each in (values, floors, ceilings))
        column = f"{HELD_OUT}_{measure}"
        corrected[column] = None
        if score is not None and floor is not None and ceiling is not None:
            corrected[column] = chance_corrected(score, floor, ceiling)
    return corrected


def _ours(run: ScoredRun) -> Standing:
    manifest = run.manifest
    samples = int(run.config["samples"])
    groups = group_by_family(run.scores)
    reference = load_reference(manifest["suite"], run.config["suite_seed"])
    limits = run.turn_limits
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float]] = {}
    corrected: dict[str, float | None] = {}
    floors: dict[str, float | None] = {}
    ceilings: dict[str, float | None] = {}
    for family, scores in groups.items():
        score = family_score(scores)
        found = family_reference([(s.task_id, s.task_hash) for s in scores], reference, score, limits[family])
        for measure in MEASURES:
            column, rate = f"{family}_{measure}", f"{measure}_rate"
            values[column] = score[rate]
            intervals[column] = score[f"{rate}_ci95"]
            if found:
                corrected[column] = found["chance_corrected"][rate]
                floors[column], ceilings[column] = found["floor"][rate], found["ceiling"][rate]
    held_out, withheld = held_out_score(groups, {f: n * samples for f, n in manifest["held_out"].items()})
    for measure in MEASURES:
        column = f"{HELD_OUT}_{measure}"
        values[column] = held_out[f"{measure}_rate"] if held_out else None
        if held_out:
            intervals[column] = held_out[f"{measure}_rate_ci95"]
    if held_out:
        corrected |= _held_out_corrected(values, floors, ceilings, manifest["held_out"])
    played = {
        family: (len(groups.get(family, ())), n * samples) for family, n in manifest["expected"].items()
    }
    return Standing(
        name=run.name,
        series=OURS,
        held_in=(),
        values=values,
        ci95=intervals,
        chance_corrected=corrected,
        suite=run.suite,
        max_turns=run.max_turns,
        folder=str(run.folder),
        played=played,
        labels=manifest["labels"],
        notes=tuple(_notes(run, played, withheld)),
    )


def _notes(run: ScoredRun, played: Mapping[str, tuple[int, int]], withheld: str | None) -> list[str]:
    titles = run.titles
    notes = []
    if ours := [titles.get(f, f) for f, labels in run.manifest["labels"].items() if "ours" in labels]:
        notes.append(f"labels: ours for {', '.join(ours)} (progress there is not on the published scale)")
    partial = [f"{titles.get(f, f)} {n}/{of}" for f, (n, of) in played.items() if n != of]
    if partial:
        notes.append(f"not the whole family: {', '.join(partial)}")
    if withheld and run.manifest["held_out"]:
        notes.append(f"held-out score withheld: {withheld}")
    if run.config["samples"] > 1 or run.config["temperature"] > 0:
        notes.append(f"mean of {run.config['samples']} samples at temperature {run.config['temperature']}")
    if run.perturbation:
        notes.append(f"perturbation {run.perturbation}")
    return notes


def _pairs(values: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in values.items())
