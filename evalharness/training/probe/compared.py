"""Probes of several models beside each other; of models that differ in the seed of their training alone, the mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalharness.base.errors import UserError
from evalharness.base.reading import read_known, read_object
from evalharness.records.files import SUMMARY
from evalharness.records.lines import read_lines
from evalharness.stats.intervals import Interval, bootstrap_mean
from evalharness.stats.trainings import Scores, difference_over_trainings, over_trainings, seed_error
from evalharness.training.probe.probing import FIGURES, REPLIES

Replies = Mapping[str, Mapping[str, float]]
"""Task, its family before it -> figure -> share of the task's prefixes, 0..1."""


@dataclass(frozen=True)
class Rate:
    """Mean over tasks and trainings, 0..1; of a difference -1..1."""

    rate: float
    ci95: Interval


@dataclass(frozen=True)
class ProbedModel:
    """One model, or several that were trained alike."""

    name: str
    trainings: int
    tasks: int
    figures: Mapping[str, Rate]
    differences: Mapping[str, Rate] | None = None
    """To the first model, on the tasks that both have. None for the first itself."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read_replies(folder: Path) -> Replies:
    """Of a finished probe's folder. Raises UserError where it is damaged or not whole."""
    lines = {line["key"]: line for line in read_lines(folder / REPLIES, "its prefix is asked anew", _read)}
    asked = read_known(folder / SUMMARY).get("prefixes")
    if len(lines) != asked:
        raise UserError(
            f"{folder / REPLIES}: {len(lines)} of {asked or 'an unknown number of'} replies are there"
        )
    found: dict[str, list[Mapping[str, bool]]] = defaultdict(list)
    for line in lines.values():
        found[f"{line['family']} {line['task']}"].append(line["verdict"])
    return {
        task: {figure: float(np.mean([verdict[figure] for verdict in verdicts])) for figure in FIGURES}
        for task, verdicts in found.items()
    }


def _read(raw: bytes) -> dict[str, Any]:
    line = read_object(raw)
    verdict = {figure: bool(line["verdict"][figure]) for figure in FIGURES}
    names = {name: str(line[name]) for name in ("key", "family", "task")}
    return {**names, "verdict": verdict}


def compared(models: Mapping[str, Sequence[Replies]]) -> list[ProbedModel]:
    """A row a name, in their order. Raises UserError where a model's trainings have no task in common."""
    first: Sequence[Replies] | None = None
    rows = []
    for name, trainings in models.items():
        tasks = _shared(name, trainings)
        figures = {figure: _rate(_scores(trainings, tasks, figure)) for figure in FIGURES}
        differences = None
        if first is not None:
            both = _shared(name, [*first, *trainings])
            differences = {
                figure: _difference(_scores(first, both, figure), _scores(trainings, both, figure))
                for figure in FIGURES
            }
        first = first or trainings
        rows.append(ProbedModel(name, len(trainings), len(tasks), figures, differences))
    return rows


def _shared(name: str, trainings: Sequence[Replies]) -> list[str]:
    tasks = sorted(set.intersection(*map(set, trainings)))
    if not tasks:
        raise UserError(f"the probes of {name} have no task in common")
    return tasks


def _scores(trainings: Sequence[Replies], tasks: Sequence[str], figure: str) -> list[Scores]:
    """By family."""
    families: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        families[task.partition(" ")[0]].append(task)
    return [
        np.array([[replies[task][figure] for task in of_family] for replies in trainings])
        for of_family in families.values()
    ]


def _rate(families: Sequence[Scores]) -> Rate:
    over_tasks = np.concatenate([scores.mean(axis=0) for scores in families])
    rate, ends = float(over_tasks.mean()), bootstrap_mean([*map(float, over_tasks)])
    if len(families[0]) < 2:
        return Rate(rate, ends)
    error = seed_error(families)
    return Rate(rate, over_trainings(ends, rate, [error], error.tasks, (0.0, 1.0)))


def _difference(first: Sequence[Scores], second: Sequence[Scores]) -> Rate:
    deltas = np.concatenate([b.mean(axis=0) - a.mean(axis=0) for a, b in zip(first, second, strict=True)])
    rate, ends = float(deltas.mean()), bootstrap_mean([*map(float, deltas)])
    if max(len(first[0]), len(second[0])) < 2:
        return Rate(rate, ends)
    return Rate(rate, difference_over_trainings(ends, rate, first, second))
