"""`evalharness sweep --over agent=...`: one model under several agents."""

from __future__ import annotations

import asyncio
import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness

from evalharness.cli import main
from evalharness.runs.listing import State, list_folder

OVER = "agent=react,window,window+history=1"


def answer(request: dict[str, Any]) -> str:
    """Turns right where it reads a chat; says nothing of use where it reads a window."""
    chat = any(message["role"] == "assistant" for message in request["messages"])
    first = "Action: turn right" if chat or "history" not in json.dumps(request) else ""
    return f"Thought: t\n{first or 'Action: wait'}"


async def sweep(
    environment: dict[str, str], url: str, folder: Path, over: str, *options: object
) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        evalharness, environment, "sweep", "--model", url, "--model-name", "toy", "--suite", "open",
        "--tasks", "compass:0-2", "--max-turns", 3, "--over", over, "-o", folder, *options,
    )  # fmt: skip


async def test_agents_are_runs_of_one_study_each_paired_with_the_first(
    environment: dict[str, str], tmp_path: Path
) -> None:
    folder, table = tmp_path / "study", tmp_path / "table.csv"
    states: list[State] = []

    def watched(request: dict[str, Any]) -> str:
        if (folder / "study.json").exists():
            states.append(list_folder(folder)[0].state)
        return answer(request)

    async with ChatServer(answer=watched).running() as server:
        done = await sweep(environment, server.url, folder, OVER, "--csv", table)
        again = await sweep(environment, server.url, folder, OVER + ",act")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "study.json").read_text())["kind"] == "agents"
    assert set(states) == {"running"}, "also between two runs"
    assert list_folder(folder)[0].state == "complete"
    rows = list(csv.DictReader(table.open()))
    assert len({row["name"] for row in rows}) == 3, "the same agent with other options is another row"
    assert "(react)" in rows[0]["name"]
    assert "B against A" in done.stdout
    assert "C against A" in done.stdout
    assert again.returncode == 0
    assert "D against A" in again.stdout
    pictures = await asyncio.to_thread(
        evalharness, environment, "report", folder, "--figure", tmp_path / "plots"
    )
    assert pictures.returncode == 0, pictures.stderr
    drawn = (tmp_path / "plots" / "progress_by_turn.csv").read_text()
    assert len({line.split(",")[0] for line in drawn.splitlines()[1:]}) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--over agent=react", "two agents"),
        ("--over turns=3,4", "two agents"),
        ("--over agent=react,reakt", "react"),
        ("--over agent=react,window+histori=2", "history"),
        ("--over agent=react,window+history", "NAME=VALUE"),
        ("--over agent=react,act --agent act", "--agent"),
        ("--over agent=react,act --tasks alfworld --perturb P1", "--over and --perturb"),
        ("--over agent=react,external", "external agent"),
        ("", "--tasks FAMILY is missing"),
    ],
)
def test_what_is_no_list_of_agents_is_refused(
    options: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "study"
    line = [
        "sweep",
        "--model",
        "http://127.0.0.1:9/v1",
        "--model-name",
        "x",
        "--suite",
        "open",
        "-o",
        str(target),
        *options.split(),
    ]
    assert main(line) == 2
    assert said in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.parametrize(
    ("over", "line"), [("agent=react,act", "agent: act"), ("protocol=tales,agentgym", "protocol: tales")]
)
def test_what_the_file_sets_is_not_replaced_without_a_word(
    over: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(f"model: http://127.0.0.1:9/v1\nmodel_name: x\nsuite: open\ntasks: alfworld\n{line}\n")
    assert main(["sweep", "--config", str(file), "--over", over, "-o", str(tmp_path / "study")]) == 2
    assert f"{line.partition(':')[0]} in {file}" in capsys.readouterr().err
