"""The probes of a study's models as a table: a row a cell, trainings that differ in their seed alone as one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from evalharness.base.reading import read_known
from evalharness.base.terminal import plain_table, words
from evalharness.base.text import printable
from evalharness.records.files import SUMMARY
from evalharness.results.html.document import percent
from evalharness.results.trainings import SEED
from evalharness.training.probe.compared import ProbedModel, Rate, Replies, compared, read_replies
from evalharness.training.probe.probing import FIGURES
from evalharness.training.study.plan import PROBES, Cell


def probed_models(cells: Sequence[Cell], folder: Path) -> list[ProbedModel]:
    """Those whose probes are finished, in the order of the cells. Raises UserError on damage."""
    settings = [{key: value for key, value in cell.settings.items() if key != SEED} for cell in cells]
    said = [key for key in (settings[0] if settings else {}) if len({each[key] for each in settings}) > 1]
    models: dict[str, list[Replies]] = {}
    for cell, each in zip(cells, settings, strict=True):
        probe = folder / PROBES / cell.name
        if read_known(probe / SUMMARY).get("left") == 0:
            name = " ".join(each[key] for key in said) or "all"
            models.setdefault(name, []).append(read_replies(probe))
    return compared(models)


def table_of_probes(models: Sequence[ProbedModel]) -> RenderableType:
    table = plain_table(
        words("after an error, %"), "trainings", "tasks", "another action", "valid", "still solvable", gap=2
    )
    for model in models:
        rates = [percent(rate.rate, rate.ci95) for rate in (model.figures[figure] for figure in FIGURES)]
        table.add_row(printable(model.name), str(model.trainings), str(model.tasks), *rates)
        if model.differences is not None:
            changes = [_signed(model.differences[figure]) for figure in FIGURES]
            table.add_row(printable(f"  - {models[0].name}"), "", "", *changes, style="dim")
    note = "mean over tasks; its interval holds the errors of tasks and of the trainings' seeds"
    return Group(table, note)


def _signed(difference: Rate) -> str:
    return ("+" if difference.rate >= 0 else "") + percent(difference.rate, difference.ci95)
