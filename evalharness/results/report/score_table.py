"""The scores of a run: one table, a row a family, that fits a terminal 80 columns wide; more where there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import plain_table
from evalharness.results.completeness import Played

if TYPE_CHECKING:
    from evalharness.records.summary import Estimate, FamilyRow, Scores, Summary

WIDE = 150
"""Columns of a terminal that has room for grounding, ceilings, and intervals with decimals."""
EARLY = "\u2020"
CUT = "\u2021"
_RATES = ("success_rate", "progress_rate")


def percent(value: float | None, interval: Sequence[float] | None = None, decimals: int = 1) -> str:
    """`43.8 [35.0,53.1]`; "-" where there is none. `decimals`: of the interval."""
    if value is None:
        return "-"
    text = f"{100 * value:5.1f}"
    if interval is not None:
        text += f" [{100 * interval[0]:.{decimals}f},{100 * interval[1]:.{decimals}f}]"
    return text


def brief(value: float | None, interval: Sequence[float] | None = None) -> str:
    """As `percent`, the interval in whole points."""
    return percent(value, interval, 0)


class ScoreTable:
    """Success and progress with 95 % intervals, beside the floor and what is left of the score above it."""

    def __init__(self, summary: Summary, titles: Mapping[str, str]) -> None:
        self.summary, self.titles = summary, titles

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE
        for table in self._tables(wide):
            yield table
            yield ""
        for line in legend(self.summary, wide=wide):
            yield Text(line, style="dim")

    def _tables(self, wide: bool) -> Iterator[RenderableType]:
        """Families whose scores go by names of their own stand in tables of their own."""
        apart, families = self.summary.scores or {}, self.summary.families
        usual = {family: entry for family, entry in families.items() if family not in apart}
        if usual:
            table = self._table(("success", "progress"), usual, wide)
            self._add_totals(table, wide)
            yield table
        for family, entry in families.items():
            if family in apart:
                names = apart[family]
                yield self._table((names.success, names.progress), {family: entry}, wide)

    def _table(self, names: tuple[str, str], families: Mapping[str, FamilyRow], wide: bool) -> Table:
        table = plain_table("family", "tasks")
        for name in names:
            table.add_column(f"{name} % [95% CI]" if wide else f"{name} %", no_wrap=True)
            if self._has_floor:
                for end in ("floor", "ceiling") if wide else ("floor",):
                    table.add_column(end, justify="right", no_wrap=True)
                if wide:
                    table.add_column("corrected [95% CI]", no_wrap=True)
                else:
                    table.add_column("corr.", justify="right", no_wrap=True)
        if wide:
            table.add_column("grounding % [95% CI]", no_wrap=True)
        for family, entry in families.items():
            played = Played(entry.n, entry.expected, entry.episodes, self.summary.samples)
            table.add_row(self.titles.get(family, family), str(played), *self._cells(entry, wide))
        return table

    def _cells(self, entry: FamilyRow, wide: bool) -> list[str]:
        rate = percent if wide else brief
        known, cells = entry.reference, []
        mark = (EARLY if _is_early(entry) else "") + (CUT if entry.cut_episodes else "")
        for name in _RATES:
            cells.append(rate(getattr(entry, name), getattr(entry, f"{name}_ci95")) + mark)
            if not self._has_floor:
                continue
            for end in ("floor", "ceiling") if wide else ("floor",):
                cells.append(percent(getattr(known, end)[name] if known else None).strip())
            corrected = known.chance_corrected[name] if known else None
            limits = known.chance_corrected_ci95[name] if known and wide else None
            text = percent(corrected, limits)
            cells.append(text if wide else text.strip())
        return [*cells, percent(entry.grounding_accuracy, entry.grounding_accuracy_ci95)][
            : None if wide else -1
        ]

    def _add_totals(self, table: Table, wide: bool) -> None:
        """The held-out score; without it what is estimated of it, or all tasks together."""
        summary = self.summary
        if (score := summary.held_out) is not None:
            self._add_total(table, "held-out", str(score.n), score, wide)
        elif (estimate := summary.held_out_estimate) is not None:
            self._add_total(
                table, "held-out, estimated", f"{estimate.n}/{estimate.stands_for}", estimate, wide
            )
        elif (pooled := summary.pooled) is not None:
            self._add_total(table, "pooled", str(pooled.n), pooled, wide)

    def _add_total(self, table: Table, name: str, tasks: str, score: Scores | Estimate, wide: bool) -> None:
        table.add_section()
        rate = percent if wide else brief
        blank = [""] * ((3 if wide else 2) if self._has_floor else 0)
        cells = [
            cell
            for name in _RATES
            for cell in (rate(getattr(score, name), getattr(score, f"{name}_ci95")), *blank)
        ]
        table.add_row(Text(name, style="bold"), tasks, *cells)

    @property
    def _has_floor(self) -> bool:
        return has_floor(self.summary)


def _is_early(entry: FamilyRow) -> bool:
    """Some episodes ended and others did not: those are no sample of the family."""
    return 0 < entry.episodes < entry.episodes_selected - entry.infrastructure_failures


def has_floor(summary: Summary) -> bool:
    return any(entry.reference for entry in summary.families.values())


def legend(summary: Summary, *, wide: bool = False) -> list[str]:
    """What stands beside the rates."""
    parts = [] if wide else ["[ ]: 95 % interval"]
    if any(map(_is_early, summary.families.values())):
        parts.append(f"{EARLY} only of the episodes that ended: not the family's rate")
    if summary.cut_from:
        parts.append(f"{CUT} the server dropped the beginning of episodes: not the model's score")
    if summary.held_out is None and summary.held_out_estimate is not None:
        parts.append("estimated: from tasks that stand for the others; its interval holds their error")
    elif summary.held_out is None and summary.pooled is not None:
        parts.append("pooled: every task of the run once; not the held-out score")
    if has_floor(summary):
        parts.append("floor: random valid action (it sees the list, your model does not)")
        name = "corrected" if wide else "corr."
        parts.append(f"{name}: 0 is the floor, 100 the best known plans")
        if wide:
            parts.append("its interval includes the floor's own error")
    return ["; ".join(parts)] if parts else []
