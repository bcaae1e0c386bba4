"""Build the tables of a run's scores: rates of each family, and with `--verbose` grounding, floors and ceilings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from evalharness.results.completeness import Played
from evalharness.results.score import ESTIMATED, HELD_OUT, MEASURES, POOLED
from evalharness.results.tabular.table import Cell, Column, Row, Table, percent_cell
from evalharness.results.terminal.answers import TOTALS

if TYPE_CHECKING:
    from evalharness.records.summary import Estimate, FamilyRow, Scores, Summary

EARLY, CUT = "\u2020", "\u2021"
_USUAL = dict(zip(MEASURES, MEASURES, strict=True))


def score_tables(summary: Summary, titles: Mapping[str, str], *, verbose: bool = False) -> Iterator[Table]:
    """Yield tables of success and progress with intervals. A family whose scores have other names has its own table."""
    apart = summary.scores or {}
    usual = {family: row for family, row in summary.families.items() if family not in apart}
    if usual:
        rows = [_family_row(summary, family, row, titles) for family, row in usual.items()]
        yield Table(
            "", _columns(_USUAL, verbose), (*rows, *_totals(summary)), "family", tuple(legend(summary))
        )
    for family, row in summary.families.items():
        if names := apart.get(family):
            columns = _columns({"success": names.success, "progress": names.progress}, verbose)
            yield Table("", columns, (_family_row(summary, family, row, titles),), "family")


def _columns(names: Mapping[str, str], verbose: bool) -> tuple[Column, ...]:
    limits = "" if verbose else " [95 % CI]"  # too wide beside the column `grounding`
    rates = [Column(measure, f"{name} %{limits}") for measure, name in names.items()]
    return (Column("tasks", "tasks"), *rates, *([Column("grounding", "grounding %")] if verbose else []))


def _family_row(summary: Summary, family: str, row: FamilyRow, titles: Mapping[str, str]) -> Row:
    played = Played(row.n, row.expected, row.episodes, summary.samples)
    marks = (EARLY if _is_early(row) else "") + (CUT if row.cut_episodes else "")
    cells = {"tasks": Cell(text=str(played)), **_rates(row, marks)}
    cells["grounding"] = percent_cell(row.grounding_accuracy, row.grounding_accuracy_ci95)
    return Row(titles.get(family, family), cells, source="run")


def _rates(score: Scores | Estimate | FamilyRow, marks: str = "") -> dict[str, Cell]:
    return {
        m: percent_cell(getattr(score, f"{m}_rate"), getattr(score, f"{m}_rate_ci95"), marks)
        for m in MEASURES
    }


def _totals(summary: Summary) -> Iterator[Row]:
    """Yield the row of the held-out score, or else of the estimated held-out score, or else of the pooled score."""
    for name in (HELD_OUT, ESTIMATED, POOLED):
        if (score := getattr(summary, name)) is not None:
            of = f"/{score.stands_for}" if name == ESTIMATED else ""
            yield Row(TOTALS[name], {"tasks": Cell(text=f"{score.n}{of}"), **_rates(score)}, source="run")
            return


def floor_table(summary: Summary, titles: Mapping[str, str]) -> Table | None:
    """Return the table of floors, ceilings and chance-corrected rates; None if no family has stored ranges."""
    rows = []
    for measure in MEASURES:
        for family, row in summary.families.items():
            if (known := row.reference) is None:
                continue
            names, rate = (summary.scores or {}).get(family), f"{measure}_rate"
            cells = {end: percent_cell(getattr(known, end)[rate]) for end in ("floor", "ceiling")}
            cells["corrected"] = percent_cell(known.chance_corrected[rate], known.chance_corrected_ci95[rate])
            group = f"{getattr(names, measure) if names else measure} %"
            rows.append(Row(titles.get(family, family), cells, group, "run"))
    columns = (
        Column("floor", "floor"),
        Column("ceiling", "ceiling"),
        Column("corrected", "corrected [95 % CI]"),
    )
    notes = (
        "floor: random valid action (it sees the list, your model does not); corrected: 0 is the floor, 100 the best "
        "known plans; its interval includes the error of the floor",
    )
    return Table("", columns, tuple(rows), "floor and ceiling", notes) if rows else None


def _is_early(entry: FamilyRow) -> bool:
    """Return whether some episodes have not ended yet: the ended episodes are then not a random sample."""
    return 0 < entry.episodes < entry.episodes_selected - entry.infrastructure_failures


def legend(summary: Summary) -> list[str]:
    """Return the explanation of the marks after the rates."""
    parts = []
    if any(map(_is_early, summary.families.values())):
        parts.append(f"{EARLY} only the episodes that have ended: not the family's rate")
    if summary.cut_from:
        parts.append(f"{CUT} the server dropped the beginning of episodes: not the model's score")
    if summary.held_out is None and summary.held_out_estimate is not None:
        parts.append(
            "estimated: from tasks that represent the others; the interval includes the error of the estimate"
        )
    return ["; ".join(parts)] if parts else []
