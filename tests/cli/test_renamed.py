"""Options have one name. An earlier one, or that of another harness, is answered with ours; what was made by an
earlier one stays usable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness import run
from evalharness.base.errors import UserError
from evalharness.cli import main

RANDOM = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai", "--max-turns", "2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*RANDOM, "--sample", "2"], "--sample is called --draw here"),
        ([*RANDOM, "--seeds=0,1"], "--seeds is called --seed here"),
        ([*RANDOM, "--epochs", "2"], "--epochs is called --samples here"),
        ([*RANDOM, "--num_fewshot", "0"], "--num_fewshot is called --shots here"),
        (["sweep", "--model", "random", "--family", "babyai"], "--family is called --tasks here"),
        (["bon", "--model", "random", "--sample", "2"], "--sample is called --draw here"),
        (
            ["refine", "mix", "a.jsonl", "-o", "b.jsonl", "--samples", "2"],
            "--samples is called --conversations here",
        ),
        (
            ["refine", "grounded", "--suite-seed", "101", "--samples=2", "-o", "b.jsonl"],
            "--samples is called --conversations here",
        ),
    ],
)
def test_a_flag_of_another_name(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_an_earlier_name_in_a_file_a_variable_and_python(
    clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.yaml").write_text("sample: 2\n")
    assert main([*RANDOM, "--config", str(tmp_path / "own.yaml")]) == 2
    assert "'sample'; it is called 'draw' here" in capsys.readouterr().err
    with pytest.raises(UserError, match="it is called 'draw' here"):
        run(model="random", sample=2)
    monkeypatch.setenv("EVALHARNESS_SAMPLE", "2")
    assert main(RANDOM) == 2
    assert "EVALHARNESS_SAMPLE is set; the option is called EVALHARNESS_DRAW here" in capsys.readouterr().err
    assert not list(clean_home.rglob("manifest.json"))


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
