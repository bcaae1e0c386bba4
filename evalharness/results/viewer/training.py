"""A training's held-out curve as the page shows it: numbers and texts, which the page escapes."""

from __future__ import annotations

from typing import Any

from evalharness.records.manifest import Disjoint
from evalharness.results.checkpoints import Training


def training_for_page(training: Training, disjoint: Disjoint | None) -> dict[str, Any]:
    """`disjoint`: the proof of the last evaluation, where there is one."""
    columns = [training.score, *(column for column in training.points[0].rates if column != training.score)]
    return {
        "model": training.model,
        "axis": training.axis,
        "suite": training.suite,
        "columns": [[column, training.titles.get(column, column)] for column in columns],
        "reward_title": training.titles["reward"],
        "windows": [[window.x, window.reward] for window in training.windows],
        "points": [
            {
                "name": point.name,
                "x": point.x,
                "until": point.x if point.until is None else point.until,
                "n": point.n,
                "rates": point.rates,
                "ci95": point.ci95,
                "reward": point.training_reward,
            }
            for point in training.points
        ],
        "notes": [*([] if disjoint is None else [_proof(disjoint, training)]), *training.notes],
    }


def _proof(disjoint: Disjoint, training: Training) -> str:
    compared = ", ".join(
        f"{training.titles.get(family, family)} {counts['evaluated']} with {counts['trained']}"
        for family, counts in sorted(disjoint.compared.items())
    )
    seeds = ", ".join(map(str, disjoint.train_seeds))
    return (
        f"no evaluated task is one of the {disjoint.train_tasks} that the trainer is served (suite seeds {seeds}), nor "
        f"the same up to renaming; compared: {compared}"
    )
