"""The published perturbations of ALFWorld, and runs under them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs.alfworld import SPEC
from evalharness.protocol.perturb import UNKNOWN_WORD, make_surface
from evalharness.protocol.prompt import load_prompt
from evalharness.records.store import read_episodes


def test_the_published_perturbations_say_what_the_paper_says() -> None:
    said = {name: make_surface(SPEC, name) for name in ("P1", "P2", "P3", "P4", "P5")}
    assert said["P1"].from_world("heat egg 1 with microwave 1") == "heat egg 1 using microwave 1"
    assert said["P2"].from_world("go to shelf 1") == "move to shelf 1"
    assert said["P3"].from_world("take cup 1 from shelf 2") == "from shelf 2 take cup 1"
    assert said["P4"].from_world("take cup 1 from shelf 2") == "take cup1 from shelf2"
    prompt = load_prompt(SPEC)
    assert "IMPORTANT" not in said["P5"].prompt(prompt).messages(said["P5"].perturbed, "g", "o")[1]["content"]
    assert said["P4"].to_world("take cup 1 from shelf 2") == UNKNOWN_WORD


def test_an_unknown_or_contradictory_perturbation_is_a_clear_error() -> None:
    with pytest.raises(UserError, match=r"'verbs'.*evalharness data perturbations list alfworld"):
        make_surface(SPEC, "verb")
    with pytest.raises(UserError, match="P3"):
        make_surface(SPEC, "P3+verbs")


def test_a_perturbed_run_is_a_run_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "run",
        "--suite",
        "open",
        "--tasks",
        "alfworld:0-1",
        "--model",
        "oracle",
        "-o",
        str(tmp_path / "run"),
    ]
    assert main([*options, "--perturb", "P4+P1"]) == 0
    assert "perturbation P1+P4" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["perturbation"] == "P1+P4"
    episodes = list(read_episodes(tmp_path / "run"))
    assert [(e.perturbation, e.success) for e in episodes] == [("P1+P4", True)] * 2
    said = " ".join(turn.action or "" for episode in episodes for turn in episode.turns)
    assert re.search(r"[a-z][0-9]", said)
    assert not re.search(r"[a-z] [0-9]", said)
    assert main(options) == 2
    assert "perturb" in capsys.readouterr().err
    assert main([*options, "--perturb", "P9"]) == 2
    assert "evalharness data perturbations list alfworld" in capsys.readouterr().err
