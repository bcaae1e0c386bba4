"""Print the success rate in each kind of task, one line per family, for one run or for two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.text import printable

if TYPE_CHECKING:
    from evalharness.records.summary import KindScore, Summary


def print_kinds(
    console: Console,
    kinds: Mapping[str, Mapping[str, Sequence[KindScore]]],
    titles: Mapping[str, str],
    letters: Sequence[str] = (),
) -> None:
    """Print success by kind of task. `kinds`: family -> kind -> score in each run. `letters`: a letter per run."""
    if not kinds:
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for family, scores in kinds.items():
        parts = (
            f"{printable(kind, single_line=True)} {' -> '.join(map(_rate, each))} ({each[0].n})"
            for kind, each in scores.items()
        )
        table.add_row(titles.get(family, family), Text(", ".join(parts)))
    console.print()
    of = f", {' -> '.join(letters)}" if letters else ""
    console.print(Text(f"% solved by kind of task{of} (tasks)", style="bold"))
    console.print(table)


def _rate(score: KindScore) -> str:
    return f"{100 * (score.success_rate or 0.0):.1f}"


def kinds_of(summary: Summary) -> dict[str, dict[str, tuple[KindScore]]]:
    """Map family -> kind of task -> score, each in a tuple of one run, as `print_kinds` needs it."""
    return {
        family: {kind: (score,) for kind, score in entry.by_kind.items()}
        for family, entry in summary.families.items()
        if entry.by_kind
    }


def kind_rows(summary: Summary) -> list[dict[str, Any]]:
    """Return a flat row for each family and kind of task, with fractions 0..1."""
    return [
        {
            "family": family,
            "kind": kind,
            "tasks": score.n,
            "success_rate": score.success_rate,
            "success_rate_ci95_low": score.success_rate_ci95[0],
            "success_rate_ci95_high": score.success_rate_ci95[1],
            "progress_rate": score.progress_rate,
        }
        for family, kinds in kinds_of(summary).items()
        for kind, (score,) in kinds.items()
    ]
