"""The probes of a study's models as a table: a row a cell, trainings that differ in their seed alone as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType

from evalharness.base.errors import UserError
from evalharness.base.reading import read_known
from evalharness.base.terminal import plain_table, words
from evalharness.base.text import printable
from evalharness.records.files import MANIFEST, SUMMARY
from evalharness.records.identity import differences
from evalharness.results.html.document import percent
from evalharness.results.trainings import SEED
from evalharness.training.probe.compared import ProbedModel, Rate, Replies, compared, read_replies
from evalharness.training.probe.probing import FIGURES
from evalharness.training.study.plan import PROBES, Cell


@dataclass(frozen=True)
class Probes:
    models: Sequence[ProbedModel]
    missing: Sequence[str]
    """Cells whose probes are not in the models, each with the reason."""

    def to_json(self) -> dict[str, Any]:
        return {"probes": [model.to_json() for model in self.models], "probes_missing": list(self.missing)}


def read_probes(cells: Sequence[Cell], folder: Path) -> Probes:
    """Those that are finished, whole, and asked the same as the first; in the order of the cells."""
    settings = [{key: value for key, value in cell.settings.items() if key != SEED} for cell in cells]
    said = [key for key in (settings[0] if settings else {}) if len({each[key] for each in settings}) > 1]
    models: dict[str, list[Replies]] = {}
    missing, first = [], ("", dict[str, Any]())
    for cell, each in zip(cells, settings, strict=True):
        probe = folder / PROBES / cell.name
        if not probe.is_dir():
            continue
        left, asked = read_known(probe / SUMMARY).get("left"), _asked(probe)
        try:
            if left != 0:
                raise UserError(f"{left} prefixes are left" if left else "it is not finished")
            if first[0] and asked != first[1]:
                how = "; ".join(differences(first[1], asked))
                raise UserError(f"it was asked otherwise than {first[0]} ({how})")
            replies = read_replies(probe)
        except UserError as why:
            missing.append(f"{cell.name}: {why}")
            continue
        first = first if first[0] else (cell.name, asked)
        models.setdefault(" ".join(each[key] for key in said) or "all", []).append(replies)
    return Probes(compared(models), missing)


def _asked(probe: Path) -> dict[str, Any]:
    """What its prefixes were and how replies were sampled."""
    identity = read_known(probe / MANIFEST).get("identity")
    known = identity if isinstance(identity, dict) else {}
    return {name: known.get(name) for name in ("prefixes", "sampling")}


def print_probes(out: Console, probes: Probes) -> None:
    """Nothing where nothing was asked."""
    if probes.models:
        out.print(table_of_probes(probes.models))
    for line in probes.missing:
        out.print(f"missing: probe of {printable(line)}", soft_wrap=True, markup=False)


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
    note = (
        "mean over tasks; where a model was trained several times, intervals hold the error of its seeds, too"
    )
    return Group(table, note)


def _signed(difference: Rate) -> str:
    return ("+" if difference.rate >= 0 else "") + percent(difference.rate, difference.ci95)
