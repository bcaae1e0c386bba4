"""The probes of a study's models as a table: a row a cell, trainings that differ in their seed alone as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from evalharness.base.terminal import plain_table, words
from evalharness.base.text import printable
from evalharness.training.probe.compared import ProbedModel, Rate, Replies, compared, read_replies
from evalharness.training.probe.probing import FIGURES, REPLIES
from evalharness.training.study.plan import PROBES, Cell

SEED = "training_seed"


def probed_models(cells: Sequence[Cell], folder: Path) -> list[ProbedModel]:
    """Those whose probes were begun, in the order of the cells. Raises UserError on damage."""
    settings = [{key: value for key, value in cell.settings.items() if key != SEED} for cell in cells]
    said = [key for key in (settings[0] if settings else {}) if len({each[key] for each in settings}) > 1]
    models: dict[str, list[Replies]] = {}
    for cell, each in zip(cells, settings, strict=True):
        probe = folder / PROBES / cell.name
        if (probe / REPLIES).exists():
            name = " ".join(each[key] for key in said) or "all"
            models.setdefault(name, []).append(read_replies(probe))
    return compared(models)


def table_of_probes(models: Sequence[ProbedModel]) -> RenderableType:
    table = plain_table(
        words("after an error, %"), "trainings", "tasks", "another action", "valid", "still solvable", gap=2
    )
    for model in models:
        rates = [_percent(model.figures[figure]) for figure in FIGURES]
        table.add_row(printable(model.name), str(model.trainings), str(model.tasks), *rates)
        if model.differences is not None:
            changes = [_percent(model.differences[figure], sign="+") for figure in FIGURES]
            table.add_row(printable(f"  - {models[0].name}"), "", "", *changes, style="dim")
    note = "mean over tasks; its interval holds the errors of tasks and of the trainings' seeds"
    return Group(table, note)


def _percent(rate: Rate, sign: str = "") -> str:
    low, high = rate.ci95
    return f"{100 * rate.rate:{sign}.1f} [{100 * low:.1f}, {100 * high:.1f}]"
