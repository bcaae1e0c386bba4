"""Which run of a study a folder holds is what its manifest says, whatever the folder is called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_study, make_run

from evalharness.cli import main

RUNS: dict[str, dict[str, dict[str, Any]]] = {
    "sweep": {"unperturbed": {}, "P1": {"perturb": "P1"}, "P2": {"perturb": "P2"}},
    "seeds": {f"seed-{n}": {"seed": n, "temperature": 1.0} for n in range(3)},
    "checkpoints": {f"step-{n}": {"name": f"m/step-{n}"} for n in (10, 20, 30)},
}


def make_study(folder: Path, kind: str) -> Path:
    for i, (name, options) in enumerate(RUNS[kind].items()):
        make_run(folder / name, {"alfworld": [(True, 1.0)] * i + [(False, 0.0)] * (3 - i)}, **options)
    return made_study(folder, kind, list(RUNS[kind]))


def swap(folder: Path, one: str, other: str) -> None:
    (folder / one).rename(folder / "between")
    (folder / other).rename(folder / one)
    (folder / "between").rename(folder / other)


@pytest.mark.parametrize("kind", RUNS)
def test_two_runs_that_have_each_others_names_are_refused(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(tmp_path / "study", kind)
    first, _, last = RUNS[kind]
    commands = [[command, str(study)] for command in ("show", "report", "show", "paper")]
    commands[1] += ["-o", str(tmp_path / "page.html")]
    commands[2].append("--behaviour")
    commands[3].insert(1, "table3")
    assert main(commands[0]) == 0
    swap(study, first, last)
    capsys.readouterr()
    for command in commands:
        assert main(command) == 2, command
        assert re.search(f"{first}.*{last}", " ".join(capsys.readouterr().err.split())), command
    assert main(["show", str(tmp_path), "--json", "-"]) == 0
    assert '"damaged"' in capsys.readouterr().out


def test_a_sweep_is_of_one_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(tmp_path / "study", "sweep")
    (study / "P1").rename(tmp_path / "P1")
    make_run(study / "P1", {"alfworld": [(True, 1.0)] * 3}, name="another", perturb="P1")
    assert main(["show", str(study)]) == 2
    assert "two models" in capsys.readouterr().err
