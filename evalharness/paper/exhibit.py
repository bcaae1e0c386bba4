"""An exhibit of the paper and the data that fills it: labelled runs, data sets, folders of MT-bench, and
measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec
from evalharness.results.difference import SIGNIFICANT, Difference, adjust_p_values
from evalharness.results.run_labels import labels_of
from evalharness.results.scored_run import ScoredRun, load_scored_run
from evalharness.results.tabular.table import Cell, Table
from evalharness.results.task_range import PUBLISHED_SUITE
from evalharness.results.terminal.comparison import holm_line, tests_of_families
from evalharness.results.trainings import SEED, group_trainings, join_runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Read = TypeVar("Read")
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Entry:
    """Runs that an exhibit shows in one row: a single run, the runs of a perturbation sweep, a greedy run and its
    Best-of-N samples, or runs of models whose training differs only in the seed."""

    label: str
    runs: tuple[ScoredRun, ...]

    def setting(self, key: str) -> str | None:
        """Return the value of the label `key` that the user gave the runs with `--label KEY=VALUE`."""
        return next((run.labels[key] for run in self.runs if key in run.labels), None)


@dataclass(frozen=True)
class Measured:
    """Functions of other packages that read data sets or judgements. They are passed in, because this package does not
    import those. They raise UserError if a path is not readable."""

    similarity: Callable[[Sequence[Path]], Rows] | None = None
    """Mean similarity of each pair of groups of texts: `first`, `second`, `similarity`."""
    error_turns: Callable[[Path], Mapping[str, Any]] | None = None
    """Count sequences of errors. Keys: `samples`, `samples_without_errors`, and `rows` with `run_length`,
    `share_of_turns`, `share_of_player_turns`."""
    agreement: Callable[[Path], Rows] | None = None
    """Agreement of each pair of raters in a run folder: `first`, `second`, the four counts of a 2x2 table, and
    `accuracy` and `kappa` with intervals."""


@dataclass(frozen=True)
class Given:
    """Everything that the user names for an exhibit."""

    specs: Mapping[str, EnvSpec]
    entries: tuple[Entry, ...] = ()
    data: tuple[Path, ...] = ()
    """Data sets of conversations."""
    mtbench: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()
    """Reasons why some paths could not be read; the other paths are used."""
    others: bool = False
    """Whether to show the rows of other papers, too."""
    x: tuple[str, Mapping[str, float]] | None = None
    """The option `--x`: the label that is the x axis instead of the exhibit's default, and x values by folder name."""
    measured: Measured = field(default_factory=Measured)

    def select(self, key: str | None, keep: Callable[[ScoredRun], bool]) -> Given:
        """Keep only the runs that `keep` accepts. If `key` is given, also drop the entries without the label `key`."""
        kept = (
            replace(entry, runs=tuple(run for run in entry.runs if keep(run)))
            for entry in self.entries
            if key is None or entry.setting(key) is not None
        )
        return replace(self, entries=tuple(entry for entry in kept if entry.runs))


def make_entries(
    labelled: Sequence[tuple[str | None, Sequence[Path]]],
) -> tuple[tuple[Entry, ...], list[str]]:
    """Load the runs of each (label, run folders) as an entry. If the label is None, the entry is named after the run.
    Return the entries, and the reasons why folders could not be read."""
    read: list[tuple[str | None, list[ScoredRun]]] = []
    left_out = []
    for label, folders in labelled:
        runs = []
        for folder in folders:
            try:
                runs.append(load_scored_run(folder))
            except UserError as error:
                left_out.append(str(error))
        if runs:
            read.append((label, runs))
    return name_entries(read), left_out


def name_entries(labelled: Sequence[tuple[str | None, Sequence[ScoredRun]]]) -> tuple[Entry, ...]:
    """Make entries with names. Runs of models that were trained alike but with different seeds (`--label
    training_seed=N`) become one entry."""
    seeded = [runs[0] for label, runs in labelled if label is None and SEED in runs[0].labels]
    others = [(label, runs) for label, runs in labelled if label is not None or SEED not in runs[0].labels]
    names = iter(labels_of([runs[0] for label, runs in others if label is None]))
    entries = [Entry(label or next(names), tuple(runs)) for label, runs in others]
    cells = group_trainings((run.manifest, run) for run in seeded)
    return (*entries, *(Entry(label or cell[0].name, tuple(cell)) for label, cell in cells))


def join_entry(entry: Entry) -> list[tuple[str, ScoredRun]]:
    """Return (label, run) for each row of the entry. Runs that differ only in the evaluation's or training's seed are
    averaged into one row; other runs get separate rows."""
    try:
        return [(entry.label, join_runs(entry.runs))]
    except UserError:
        names = labels_of(entry.runs)
        return [(f"{entry.label}: {name}", run) for name, run in zip(names, entry.runs, strict=True)]


def is_plain(run: ScoredRun) -> bool:
    """Return whether the main table can show the run: no perturbation, one attempt at each task."""
    return run.perturbation is None and not is_sampled(run)


def plain(given: Given, key: str | None = None) -> Given:
    """Keep only runs that the main table can show. If `key` is given, also drop the entries without the label `key`."""
    families = {family for family, spec in given.specs.items() if PUBLISHED_SUITE in spec.suites.expected}
    return given.select(key, lambda run: is_plain(run) and not families.isdisjoint(run.manifest.counts))


def is_sampled(run: ScoredRun) -> bool:
    return run.samples > 1


def read_each(
    paths: Iterable[Path], read: Callable[[Path], Read] | None, problems: list[str]
) -> Iterator[tuple[Path, Read]]:
    """Yield each path with what `read` returns for it; if it cannot be read, append the reason to `problems`."""
    for path in paths:
        assert read is not None
        try:
            content = read(path)
        except UserError as error:
            problems.append(str(error))
        else:
            yield path, content


SCHEMA = 1


@dataclass(frozen=True)
class Filled:
    """An exhibit filled with the given data."""

    tables: tuple[Table, ...]
    """First the exhibit's table, then tables of differences between the user's runs."""
    missing: tuple[str, ...] = ()
    """Texts that name the data that is still missing."""
    figure: Callable[[], Figure] | None = None
    """Function that draws the figure, to be called within `looks.style()`; None for a table or if there is no data."""

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of all tables as flat dicts with the same keys, for a CSV file."""
        rows = [row for table in self.tables for row in table.flat()]
        keys = dict.fromkeys(key for row in rows for key in row)
        return [{key: row.get(key) for key in keys} for row in rows]


def mark_significant(filled: Filled) -> Filled:
    """Mark significant differences with a star. Holm's correction is over all tests of the exhibit. A comparison that
    several cells show is counted as one test."""
    tables = filled.tables
    comparisons: dict[str, dict[tuple[str, str], Difference]] = {}
    for cell in (cell for table in tables for row in table.rows for cell in row.cells.values()):
        if cell.test is not None:
            comparisons.setdefault(cell.comparison, {})[cell.test.family, cell.test.measure] = cell.test
    tests = adjust_p_values([list(listed.values()) for listed in comparisons.values()])
    corrected = {
        (name, d.family, d.measure): d
        for name, listed in zip(comparisons, tests, strict=True)
        for d in listed
    }
    note = (
        f"* Holm-adjusted p below {SIGNIFICANT}, and p by kind as well; (*) the check by kind does not confirm it. "
        + holm_line("held-out (else pooled, or the only family's)", len(tests), tests_of_families(tests))
    )

    def mark_cell(cell: Cell) -> Cell:
        if cell.test is None:
            return cell
        d = corrected[cell.comparison, cell.test.family, cell.test.measure]
        star = "" if d.p_holm >= SIGNIFICANT else "*" if (d.p_by_kind or 1.0) < SIGNIFICANT else "(*)"
        return replace(cell, test=d, marks=star)

    def mark_table(table: Table) -> Table:
        if not any(cell.test for row in table.rows for cell in row.cells.values()):
            return table
        rows = (replace(r, cells={k: mark_cell(c) for k, c in r.cells.items()}) for r in table.rows)
        return replace(table, rows=tuple(rows), notes=(*table.notes, note))

    return replace(filled, tables=tuple(map(mark_table, tables)))


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of the paper."""

    name: str
    """Name in the command line, such as `table2`."""
    title: str
    shows: str
    command: str
    """The command that produces the data for this exhibit."""
    takes: Callable[[Given], Sequence[str]]
    """Return the names of the given data that the exhibit uses. The list calls it for every exhibit."""
    fill: Callable[[Given], Filled]
    needs: Callable[[Given], Sequence[str]] = lambda given: ()
    """Return what is missing if only a part of the data is given."""

    def to_json(self, given: Given) -> dict[str, Any]:
        """Return the exhibit's entry for the list of all exhibits."""
        return {
            "name": self.name,
            "title": self.title,
            "shows": self.shows,
            "command": self.command,
            "filled_by": list(self.takes(given)),
            "missing": list(self.missing(given)),
        }

    def fill_marked(self, given: Given) -> Filled:
        """Fill the exhibit and mark significant differences. If it cannot use any of the given data, name the command
        to run."""
        filled = mark_significant(self.fill(given))
        if (given.entries or given.data or given.mtbench) and not self.takes(given):
            filled = replace(filled, missing=(*filled.missing, f"what fills it: {self.command}"))
        return filled

    def missing(self, given: Given) -> list[str]:
        """Return what is missing. If all data is missing, return the command that produces it."""
        return list(self.needs(given)) if self.takes(given) else [self.command]
