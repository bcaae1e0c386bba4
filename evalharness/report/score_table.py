"""The scores of a run: one table, a row a family, that fits a terminal 80 columns wide; more where there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from evalharness.analysis.completeness import Played

WIDE = 150
"""Columns of a terminal that has room for grounding, ceilings, and intervals with decimals."""
USUAL: Mapping[str, Any] = {"success": "success", "progress": "progress"}
MEASURES = (("success", "success_rate"), ("progress", "progress_rate"))


def percent(value: float | None, interval: Sequence[float] | None = None) -> str:
    """`43.8 [35.0,53.1]`; "-" where there is none."""
    if value is None:
        return "-"
    text = f"{100 * value:5.1f}"
    if interval is not None:
        text += f" [{100 * interval[0]:.1f},{100 * interval[1]:.1f}]"
    return text


def _brief(value: float | None, interval: Sequence[float] | None = None) -> str:
    """As `percent`, the interval in whole points."""
    if value is None or interval is None:
        return percent(value)
    return f"{100 * value:5.1f} [{100 * interval[0]:.0f},{100 * interval[1]:.0f}]"


class ScoreTable:
    """Success and progress with 95 % intervals, beside the floor and what is left of the score above it."""

    def __init__(self, summary: Mapping[str, Any], titles: Mapping[str, str]) -> None:
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
        apart, families = self.summary.get("scores", {}), self.summary["families"]
        usual = {family: entry for family, entry in families.items() if family not in apart}
        if usual:
            table = self._table(USUAL, usual, wide)
            if self.summary["held_out"]:
                self._add_held_out(table, self.summary["held_out"], wide)
            yield table
        for family, entry in families.items():
            if family in apart:
                yield self._table(apart[family], {family: entry}, wide)

    def _table(self, names: Mapping[str, Any], families: Mapping[str, Any], wide: bool) -> Table:
        table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("family", no_wrap=True)
        table.add_column("tasks", justify="right", no_wrap=True)
        for measure, _ in MEASURES:
            table.add_column(f"{names[measure]} % [95% CI]" if wide else f"{names[measure]} %", no_wrap=True)
            if self._has_floor:
                for name in ("floor", "ceiling") if wide else ("floor",):
                    table.add_column(name, justify="right", no_wrap=True)
                if wide:
                    table.add_column("corrected [95% CI]", no_wrap=True)
                else:
                    table.add_column("corr.", justify="right", no_wrap=True)
        if wide:
            table.add_column("grounding % [95% CI]", no_wrap=True)
        for family, entry in families.items():
            played = Played(entry["n"], entry["expected"], entry["episodes"], self.summary["samples"])
            table.add_row(self.titles.get(family, family), str(played), *self._cells(entry, wide))
        return table

    def _cells(self, entry: Mapping[str, Any], wide: bool) -> list[str]:
        rate = percent if wide else _brief
        known, cells = entry.get("reference"), []
        for _, name in MEASURES:
            cells.append(rate(entry.get(name), entry.get(f"{name}_ci95")))
            if not self._has_floor:
                continue
            for end in ("floor", "ceiling") if wide else ("floor",):
                cells.append(percent(known[end][name] if known else None).strip())
            corrected = known["chance_corrected"][name] if known else None
            limits = known["chance_corrected_ci95"][name] if known and wide else None
            text = percent(corrected, limits)
            cells.append(text if wide else text.strip())
        return [*cells, percent(entry.get("grounding_accuracy"), entry.get("grounding_accuracy_ci95"))][
            : None if wide else -1
        ]

    def _add_held_out(self, table: Table, score: Mapping[str, Any], wide: bool) -> None:
        table.add_section()
        rate = percent if wide else _brief
        blank = [""] * ((3 if wide else 2) if self._has_floor else 0)
        cells = [cell for _, name in MEASURES for cell in (rate(score[name], score[f"{name}_ci95"]), *blank)]
        table.add_row(Text("held-out", style="bold"), str(score["n"]), *cells)

    @property
    def _has_floor(self) -> bool:
        return has_floor(self.summary)


def has_floor(summary: Mapping[str, Any]) -> bool:
    return any(entry.get("reference") for entry in summary["families"].values())


def legend(summary: Mapping[str, Any], *, wide: bool = False) -> list[str]:
    """What stands beside the rates."""
    parts = [] if wide else ["[ ]: 95 % interval"]
    if has_floor(summary):
        parts.append(
            "floor: a random choice among the valid actions, which it is handed at every turn and a model is not"
        )
        name = "corrected" if wide else "corr."
        parts.append(f"{name}: 0 is the floor, 100 the best known plans")
        if wide:
            parts.append("its interval holds the floor's own error, too")
    return ["; ".join(parts)] if parts else []
