"""`evalharness run --model human:NAME`: a person's run is a run like any other."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command_line import command, evalharness

from evalharness.cli import main
from evalharness.records.store import read_episodes, read_manifest

TASKS = "compass/open/000,compass/open/001"


def play(
    environment: dict[str, str], said: str, folder: Path, name: str = "ann"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(
            "run", "--model", f"human:{name}", "--tasks", TASKS, "--suite", "open", "-o", folder
        ),
        env=environment, input=said, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def plans(environment: dict[str, str], tmp_path: Path) -> dict[str, list[str]]:
    """Task -> the oracle's actions."""
    folder = tmp_path / "oracle"
    evalharness(environment, "run", "--model", "oracle", "--suite", "open", "--tasks", TASKS, "-o", folder)
    return {e.task_id: [str(turn.action) for turn in e.turns] for e in read_episodes(folder)}


def test_who_leaves_goes_on_where_the_last_episode_ended(
    environment: dict[str, str], tmp_path: Path, plans: dict[str, list[str]]
) -> None:
    folder = tmp_path / "run"
    first = play(environment, "turn around in circles\ngive up\nquit\n", folder)
    assert first.returncode == 0, first.stderr
    assert "compass/open/000: not solved" in first.stdout or "compass/open/001: not solved" in first.stdout
    [given_up] = read_episodes(folder)
    assert (given_up.ended_by, len(given_up.turns), given_up.success) == ("policy_stopped", 1, False)
    [left] = plans.keys() - {given_up.task_id}
    second = play(environment, "\n".join(plans[left]) + "\n", folder)
    assert second.returncode == 0, second.stderr
    assert f"{left}: solved" in second.stdout
    assert {e.task_id: e.success for e in read_episodes(folder)} == {given_up.task_id: False, left: True}
    assert read_manifest(folder).model_name == "human:ann"
    assert evalharness(environment, "verify", folder).returncode == 0


def test_a_task_that_was_left_begins_anew(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    play(environment, "turn around\nquit\n", folder)
    assert not list(read_episodes(folder))
    play(environment, "give up\ngive up\n", folder)
    assert [episode.turns for episode in read_episodes(folder)] == [(), ()]


def test_a_person_reads_what_a_model_reads_and_no_list(environment: dict[str, str], tmp_path: Path) -> None:
    plain = play(environment, "\nquit\n", tmp_path / "plain")
    listed = play(environment, "\nquit\n", tmp_path / "listed", name="ann+list")
    assert "Goal: " in plain.stdout
    after = [done.stdout.partition("[1] > ")[2].partition("[1] > ")[0] for done in (plain, listed)]
    assert "turn left" not in after[0]
    assert "turn left" in after[1]
    names = [
        json.loads((tmp_path / f / "manifest.json").read_text())["model_name"] for f in ("plain", "listed")
    ]
    assert names == ["human:ann", "human:ann+list"]


def test_people_have_folders_of_their_own(environment: dict[str, str], tmp_path: Path) -> None:
    play(environment, "quit\n", tmp_path / "run")
    other = play(environment, "quit\n", tmp_path / "run", name="bob")
    assert other.returncode == 2
    assert str(tmp_path / "run") in other.stderr


def test_what_is_no_name_of_a_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--suite", "open", "--tasks", "babyai:0", "-o", str(tmp_path / "run")]
    assert main(["run", "--model", "human:../ann", *words]) == 2
    assert "../ann" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
