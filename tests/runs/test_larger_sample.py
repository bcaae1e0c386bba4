"""More of the same tasks join a run that is there; anything else is another run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.cli import main

WORDS = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai,pddl", "--max-turns", "3"]


@pytest.mark.parametrize("option", ["--draw", "--limit"])
def test_a_larger_part_goes_on_in_the_same_folder(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert main([*WORDS, option, "2", "-o", str(folder)]) == 0
    first = (folder / "episodes.jsonl").read_text()
    assert main([*WORDS, option, "3", "-o", str(folder)]) == 0
    assert (folder / "episodes.jsonl").read_text().startswith(first)
    assert len((folder / "episodes.jsonl").read_text().splitlines()) == 6
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["counts"] == {"babyai": 3, "pddl": 3}
    assert len(manifest["sessions"]) == 2
    assert json.loads((folder / "summary.json").read_text())["pooled"]["n"] == 6
    assert main(["verify", str(folder)]) == 0
    assert main([*WORDS, option, "3", "-o", str(tmp_path / "at-once")]) == 0
    whole = json.loads((tmp_path / "at-once" / "manifest.json").read_text())
    assert whole["digest"] == manifest["digest"]
    capsys.readouterr()
    fewer_families = [*WORDS, option, "3", "--tasks", "babyai"]
    for other in ([*WORDS, option, "2"], [*WORDS, option, "4", "--seed", "7"], fewer_families):
        assert main([*other, "-o", str(folder)]) == 2
        said = capsys.readouterr().err
        assert ("to add tasks" in said) is (other is fewer_families)
    assert main([*WORDS, option, "4", "--seed", "7", "-o", str(folder)]) == 2
    assert option not in capsys.readouterr().err, "that alone would join"


def test_other_families_and_the_whole_of_one_join(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    few = [*WORDS, "--tasks", "pddl:kind=gripper", "--draw", "2"]
    steps = [few, [*WORDS, "--tasks", "pddl:kind=gripper"], [*WORDS, "--tasks", "pddl"], WORDS]
    before = ""
    for words, count in zip(steps, (2, 20, 60, 172), strict=True):
        assert main([*words, "-o", str(folder)]) == 0
        lines = (folder / "episodes.jsonl").read_text()
        assert lines.startswith(before)
        assert len(lines.splitlines()) == count
        before = lines
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["counts"] == {"babyai": 112, "pddl": 60}
    assert set(manifest["identity"]["prompts_sha256"]) == {"babyai", "pddl"}
    assert main(["verify", str(folder)]) == 0
    assert main([*WORDS, "-o", str(tmp_path / "at-once")]) == 0
    whole = json.loads((tmp_path / "at-once" / "manifest.json").read_text())
    assert whole["digest"] == manifest["digest"]
    capsys.readouterr()
    assert main([*WORDS, "--tasks", "alfworld,pddl", "-o", str(folder)]) == 2, "babyai is not among them"
    assert "--tasks" in capsys.readouterr().err
