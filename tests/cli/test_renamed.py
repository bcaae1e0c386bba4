"""What was made when an option had another name stays usable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.cli import main

RANDOM = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai", "--max-turns", "2"]


def test_a_folder_made_with_an_earlier_name_is_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert main([*RANDOM, "--draw", "2", "-o", str(folder)]) == 0
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["identity"]["config"]["sample"] == 2, "its name when there were runs already"
    # As the folder was when the option was called `sample`: its manifest is the same.
    config = folder / "config.yaml"
    assert "\ndraw: 2\n" in config.read_text()
    config.write_text(config.read_text().replace("\ndraw: 2\n", "\nsample: 2\n"))
    assert main(["verify", str(folder)]) == 0
    episodes = (folder / "episodes.jsonl").read_text()
    assert main(["run", "--config", str(config), "-o", str(folder)]) == 0
    assert (folder / "episodes.jsonl").read_text() == episodes
    assert main([*RANDOM, "--draw", "3", "-o", str(folder)]) == 0
    assert (folder / "episodes.jsonl").read_text().startswith(episodes)
    assert len((folder / "episodes.jsonl").read_text().splitlines()) == 3
