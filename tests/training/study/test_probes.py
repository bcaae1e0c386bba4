"""The probes of a study's models, as `study` and `show` print them."""

from __future__ import annotations

import io
import json
from pathlib import Path

from rich.console import Console

from evalharness.records.files import MANIFEST, SUMMARY
from evalharness.training.probe.probing import REPLIES
from evalharness.training.study.plan import PROBES, Cell
from evalharness.training.study.probes import print_probes, read_probes


def cell(
    mode: str, seed: int, folder: Path, another: int | None, left: int = 0, max_tokens: int = 96
) -> Cell:
    """With a probe of ten tasks, `another` of them right; None: none was begun."""
    name, settings = f"{mode}-seed{seed}", {"mode": mode, "training_seed": str(seed)}
    if another is not None:
        probe = folder / PROBES / name
        probe.mkdir(parents=True)
        lines = [
            {
                "key": f"k{n}",
                "family": "pddl",
                "task": f"t{n}",
                "verdict": dict.fromkeys(("another", "valid", "solvable"), n < another),
            }
            for n in range(10)
        ]
        (probe / REPLIES).write_text("".join(json.dumps(line) + "\n" for line in lines))
        (probe / SUMMARY).write_text(json.dumps({"prefixes": 10, "left": left}))
        identity = {"kind": "probe", "prefixes": {"count": 10}, "sampling": {"max_tokens": max_tokens}}
        (probe / MANIFEST).write_text(json.dumps({"identity": identity}))
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
    found = read_probes(cells, tmp_path)
    assert [(model.name, model.trainings) for model in found.models] == [("full", 2), ("no_refine_loss", 1)]
    assert found.missing == ["no_refine_loss-seed1: 3 prefixes are left"]
    out = io.StringIO()
    print_probes(Console(width=120, file=out), found)
    lines = out.getvalue().splitlines()
    assert lines[1].split()[:4] == ["full", "2", "10", "70.0"]
    assert lines[2].split()[:4] == ["no_refine_loss", "1", "10", "40.0"]
    assert lines[3].split()[:3] == ["-", "full", "-30.0"]
    assert lines[-1] == "missing: probe of no_refine_loss-seed1: 3 prefixes are left"


def test_what_was_asked_otherwise_or_has_lost_replies_is_named_and_in_no_mean(tmp_path: Path) -> None:
    cells = [
        cell("full", 0, tmp_path, 8),
        cell("full", 1, tmp_path, 2, max_tokens=1024),
        cell("full", 2, tmp_path, 4),
        cell("full", 3, tmp_path, 4),
    ]
    torn = tmp_path / PROBES / "full-seed2" / REPLIES
    torn.write_text("".join(torn.read_text().splitlines(keepends=True)[:6]))
    (tmp_path / PROBES / "full-seed3" / REPLIES).write_text("")
    found = read_probes(cells, tmp_path)
    assert [(model.name, model.trainings) for model in found.models] == [("all", 1)]
    assert found.models[0].figures["another"].rate == 0.8
    assert [line.partition(": ")[0] for line in found.missing] == ["full-seed1", "full-seed2", "full-seed3"]
    assert "otherwise than full-seed0 (sampling.max_tokens: 96 there" in found.missing[0]
    assert found.missing[1].endswith("6 of 10 replies are there")
    assert found.missing[2].endswith("0 of 10 replies are there")


def test_a_study_without_probes_has_no_row(tmp_path: Path) -> None:
    found = read_probes([cell("full", 0, tmp_path, None)], tmp_path)
    assert (found.models, found.missing) == ([], [])
