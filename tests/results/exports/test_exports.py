"""Exports are what other tools read: Harbor reads its own with its real package."""

from __future__ import annotations

import asyncio
import csv
import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import throwaway
from chat_server import ChatServer
from command_line import evalharness, run_compass
from made_runs import make_run

from evalharness.cli import main
from evalharness.records.episode import FurtherCall
from evalharness.results.exports import atif
from evalharness.results.exports.conversation import Protocol, conversation
from evalharness.results.exports.trackers import scores
from evalharness.results.tables import read_sorted_episodes

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run, of two samples a task, by the random policy."""
    folder = tmp_path_factory.mktemp("runs") / "played"
    options = [
        "--suite",
        "open",
        "--tasks",
        "babyai:0-2",
        "--samples",
        "2",
        "--temperature",
        "1",
        "--max-turns",
        "4",
    ]
    assert main(["run", "--model", "random", *options, "-o", str(folder)]) == 0
    return folder


def export(run: Path, form: str, target: Path, *more: str) -> Path:
    assert main(["export", str(run), "--format", form, "-o", str(target), *more]) == 0
    return target


def episodes(run: Path) -> list[Any]:
    return list(read_sorted_episodes(run))


def run_without_an_action(folder: Path) -> Path:
    """A made run whose first episode has a reply without an action."""
    run = make_run(folder, {"babyai": [SOLVED, NOTHING]})
    lines = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    lines[0]["turns"][1] |= {"reply": "Hm.", "thought": "", "action": None, "observation": "No action."}
    (run / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def test_openai_chat_is_the_conversation_as_it_was_had(played: Path, tmp_path: Path) -> None:
    target = export(played, "openai-chat", tmp_path / "chats.jsonl")
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert len(lines) == 6
    for line, episode in zip(lines, episodes(played), strict=True):
        roles = [message["role"] for message in line["messages"]]
        assert roles == ["system", "user", *(["assistant", "user"] * len(episode.turns))[:-1]]
        opening = line["messages"][1]["content"]
        assert opening.endswith(f"Goal: {episode.goal}\nObservation: {episode.first_observation}")
        assert line["messages"][2]["content"] == episode.turns[0].reply
        assert line["metadata"]["task_id"] == episode.task_id
    solved = export(played, "openai-chat", tmp_path / "solved.jsonl", "--successful")
    assert len(solved.read_text().splitlines()) == sum(e.success for e in episodes(played))


async def test_the_exported_chat_is_the_one_that_was_sent(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Against the messages that a real server on loopback received, at the last turn of an episode."""
    run = tmp_path / "run"
    options = ("--model-name", "toy", "--limit", 1, "--max-turns", 4)
    async with ChatServer(lambda _: "Thought: I look.\nAction: look\nAction: turn left").running() as server:
        done = await asyncio.to_thread(run_compass, environment, run, "--model", server.url, *options)
    assert done.returncode == 0, done.stderr
    target = tmp_path / "chat.jsonl"
    assert evalharness(environment, "export", run, "--format", "openai-chat", "-o", target).returncode == 0
    messages = json.loads(target.read_text())["messages"]
    last = max((request["messages"] for request in server.requests), key=len)
    assert len(last) == 2 + 2 * 3
    assert messages[:-1] == last


def test_csv_cells_are_never_formulas(tmp_path: Path) -> None:
    hostile = "=HYPERLINK(0)"
    goals = {"babyai": hostile}
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]}, goals=goals)
    path = run / "episodes.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line, start in zip(lines, ("+1+1", "@SUM(A1)"), strict=True):
        line["turns"][0] |= {"action": start, "thought": "-2+3", "observation": "\t=1+1", "reply": " =1+1"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["export", str(run), "--format", "csv", "-o", str(tmp_path / "out")]) == 0
    for name in ("episodes", "turns"):
        with (tmp_path / "out" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        for row in rows:
            for value in row:
                assert not value.lstrip().startswith(("=", "+", "-", "@")), value
    rows = list(csv.DictReader((tmp_path / "out" / "episodes.csv").open(newline="", encoding="utf-8")))
    assert [row["goal"] for row in rows] == [f"'{hostile}"] * 2
    assert [row["first_progress_turn"] for row in rows] == ["2", ""]
    assert json.loads(rows[0]["subgoals"]) == ["one", "two"]


def test_parquet_has_the_tables(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]})
    assert main(["export", str(run), "--format", "parquet", "-o", str(tmp_path / "out")]) == 0
    assert pd.read_parquet(tmp_path / "out" / "episodes.parquet")["progress"].tolist() == [1.0, 0.0]
    assert len(pd.read_parquet(tmp_path / "out" / "turns.parquet")) == 6


@pytest.mark.parametrize("form", ["atif", "openai-chat"])
def test_the_same_run_gives_the_same_bytes(tmp_path: Path, form: str) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]})
    for name in ("one", "two"):
        assert main(["export", str(run), "--format", form, "-o", str(tmp_path / name)]) == 0
    pair = [tmp_path / "one", tmp_path / "two"]
    one, two = ([p] if p.is_file() else sorted(p.iterdir()) for p in pair)
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_a_task_id_cannot_leave_the_folder(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    episode = replace(episodes(run)[0], task_id="../../etc/passwd")
    assert atif.file_name(episode) == "etc-passwd-0.json"


def test_an_agent_that_asks_more_than_actions_has_a_conversation(tmp_path: Path) -> None:
    """One whose class is not here, as a plain chat."""
    [episode] = episodes(make_run(tmp_path / "run", {"babyai": [SOLVED]}))
    asked = replace(episode.turns[1], further=(FurtherCall("think", "Let me see."),))
    foreign = replace(episode, turns=(episode.turns[0], asked, episode.turns[2]), further=asked.further)
    assert len(conversation(foreign, Protocol(agent=None))) == 7


READ_ATIF = """
import json, pathlib, sys
from harbor.models.trajectories import Trajectory

found = []
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    trajectory = Trajectory.model_validate_json(path.read_text())
    acting = [step for step in trajectory.steps if step.tool_calls]
    actions = [step.tool_calls[0].arguments["action"] for step in acting]
    found.append([trajectory.extra["task_id"], len(trajectory.steps), actions])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_harbors_models_accept_every_trajectory(played: Path, tmp_path: Path) -> None:
    """The real package (Python 3.12 or newer) without its cloud clients: its models need pydantic only."""
    python = throwaway.make(
        tmp_path / "venv",
        ["--no-deps", "harbor==0.26.0"],
        ["pydantic"],
        python=throwaway.python_of_at_least(12),
    )
    folder = export(played, "atif", tmp_path / "atif")
    done = subprocess.run(
        [python, "-c", READ_ATIF, folder], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    ours = [[e.task_id, 2 + 2 * len(e.turns), [t.action for t in e.turns]] for e in episodes(played)]
    assert json.loads(done.stdout) == ours


REVERIFY = """
import json, pathlib, sys
from nemo_gym import atif_reverification as reverification

documents = sorted(pathlib.Path(sys.argv[1]).iterdir())
rows = [
    {"_ng_task_index": i, "_ng_rollout_index": 0, "agent_ref": {"name": "agent"}, "responses_create_params": {}}
    for i in range(len(documents))
]
entries = [
    reverification.AtifReverifyManifestEntry(
        trajectory_path=path, _ng_task_index=i, _ng_rollout_index=0
    )
    for i, path in enumerate(documents)
]
for verified in reverification.project_atif_manifest_entries(
    entries, reverification.index_materialized_inputs(rows), manifest_directory=documents[0].parent
):
    output = verified.payload["response"]["output"]
    print(json.dumps([item.get("output") or item.get("arguments") for item in output if item["type"] != "reasoning"]))
"""


@pytest.mark.slow(60)
def test_nemo_gyms_reverify_takes_every_trajectory(played: Path, tmp_path: Path) -> None:
    """Also an episode with a reply that had no action."""
    python = throwaway.nemo_gym(tmp_path / "gym")
    for run in (played, run_without_an_action(tmp_path / "run")):
        folder = export(run, "atif", tmp_path / f"{run.name}-atif")
        done = subprocess.run(
            [python, "-c", REVERIFY, folder], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        ours = [
            [
                part
                for turn in episode.turns
                for part in (
                    None,
                    json.dumps({"action": turn.action}, separators=(",", ":")),
                    turn.observation,
                )
            ]
            for episode in episodes(run)
        ]
        assert [json.loads(line) for line in done.stdout.splitlines()] == ours


def test_scores_for_a_tracker_are_flat_numbers(tmp_path: Path) -> None:
    from evalharness.results.summarize import summarize

    run = make_run(tmp_path / "run", {"babyai": [SOLVED, HALF]})
    found = scores(summarize(run))
    assert found["babyai/success_rate"] == 0.5
    assert found["babyai/progress_rate_ci95_low"] <= 0.75 <= found["babyai/progress_rate_ci95_high"]
    assert found["turns"] == 6


@pytest.mark.parametrize("tracker", ["mlflow", "trackio", "wandb"])
def test_a_tracker_that_is_not_installed_is_named_with_its_extra(
    tracker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, tracker, None)
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]})
    assert main(["export", str(run), "--format", tracker]) == 2
    assert f"pip install 'evalharness[{tracker}]'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_trackers_keep_the_scores(tmp_path: Path) -> None:
    """The real packages, offline: what they wrote is read back from their own files."""
    packages = throwaway.overlay(
        tmp_path / "packages", "mlflow-skinny==3.17.2", "trackio==0.43.0", "wandb==0.31.0"
    )
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, HALF]})
    kept = {name: tmp_path / name for name in ("mlflow", "trackio", "wandb")}
    for folder in kept.values():
        folder.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(packages),
        "HOME": str(tmp_path),
        "WANDB_MODE": "offline",
        "WANDB_DIR": str(kept["wandb"]),
        "TRACKIO_DIR": str(kept["trackio"]),
        "MLFLOW_TRACKING_URI": kept["mlflow"].as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }
    code = "import sys; from evalharness.cli import main; sys.exit(any([main(a.split('|')) for a in sys.argv[1:]]))"
    commands = [f"export|{run}|--format|{tracker}|--project|tests" for tracker in kept]
    done = subprocess.run(
        [sys.executable, "-c", code, *commands], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    metric = next(kept["mlflow"].glob("*/*/metrics/babyai/success_rate")).read_text()
    assert float(metric.split()[1]) == 0.5
    with sqlite3.connect(kept["trackio"] / "tests.db") as database:
        assert any("babyai/success_rate" in str(row) for row in database.execute("select * from metrics"))
    log = next(kept["wandb"].glob("wandb/offline-run-*/run-*.wandb")).read_bytes()
    assert b"success_rate" in log
