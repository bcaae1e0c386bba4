"""The probes of a study's models, as `study` and `show` print them."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from evalharness.records.files import SUMMARY
from evalharness.training.probe.probing import REPLIES
from evalharness.training.study.plan import PROBES, Cell
from evalharness.training.study.probes import probed_models, table_of_probes


def cell(mode: str, seed: int, folder: Path, another: int | None, left: int = 0) -> Cell:
    """With a probe of ten tasks, `another` of them right; None: none was begun."""
    name, settings = f"{mode}-seed{seed}", {"mode": mode, "training_seed": str(seed)}
    if another is not None:
        probe = folder / PROBES / name
        probe.mkdir(parents=True)
        lines = [
            {
                "family": "pddl",
                "task": f"t{n}",
                "verdict": dict.fromkeys(("another", "valid", "solvable"), n < another),
            }
            for n in range(10)
        ]
        (probe / REPLIES).write_text("".join(json.dumps(line) + "\n" for line in lines))
        (probe / SUMMARY).write_text(json.dumps({"left": left}))
    return Cell(name, settings, (), None, (), f"probe {name}")


def test_trainings_that_differ_in_their_seed_are_one_row_and_unfinished_probes_are_none(
    tmp_path: Path,
) -> None:
    cells = [
        cell("full", 0, tmp_path, 8),
        cell("full", 1, tmp_path, 6),
        cell("no_refine_loss", 0, tmp_path, 4),
        cell("no_refine_loss", 1, tmp_path, 9, left=3),
        cell("all_turns", 0, tmp_path, None),
    ]
    models = probed_models(cells, tmp_path)
    assert [(model.name, model.trainings) for model in models] == [("full", 2), ("no_refine_loss", 1)]
    out = io.StringIO()
    Console(width=120, file=out).print(table_of_probes(models))
    lines = out.getvalue().splitlines()
    assert lines[1].split()[:4] == ["full", "2", "10", "70.0"]
    assert lines[2].split()[:4] == ["no_refine_loss", "1", "10", "40.0"]
    assert lines[3].split()[:3] == ["-", "full", "-30.0"]


def test_a_study_without_probes_has_no_row(tmp_path: Path) -> None:
    assert probed_models([cell("full", 0, tmp_path, None)], tmp_path) == []
