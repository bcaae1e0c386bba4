"""Runs become data and data becomes a page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from scripted_model import SCRIPT, TRAJECTORY
from small_suites import first_tasks, freeze, home_at

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.protocol import react
from evalharness.records.data_set import open_as_runs
from evalharness.records.store import EPISODES, read_episodes
from evalharness.suites import open as suites
from evalharness.training.datasets.conversation import (
    Conversation,
    read_data,
    read_manifest,
    write_data,
)
from evalharness.training.datasets.from_runs import Keep, parse_keep
from evalharness.training.synthesis.dialogue import convert_trajectory
from evalharness.training.synthesis.script import read_script
from evalharness.training.synthesis.trajectory import read_turn

pytestmark = pytest.mark.slow(20)

SEED = 100


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a small open suite of ALFWorld."""
    with home_at(tmp_path_factory.mktemp("runs")) as folder:
        freeze("alfworld", SEED, first_tasks("alfworld", SEED, 3))
        yield folder


def plans(seed: int) -> dict[str, list[str]]:
    """First observation -> plan."""
    spec = specs()["alfworld"]
    environment = spec.make(None)
    found = {}
    for task in suites.load_open(spec, seed, print)[:3]:
        observation, _ = environment.reset(options={"task": task})
        found[observation] = environment.oracle()
    environment.close()
    return found


def erring(known: dict[str, list[str]]) -> ChatServer:
    """A model that says something the world refuses, then nothing of use, then follows the plan."""

    def answer(request: dict[str, Any]) -> str:
        messages = request["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        plan = next((plan for start, plan in known.items() if start in messages[1]["content"]), ["look"])
        said = ["Thought: I try.\nAction: fly to shelf 1", "I do not know."]
        return said[turn] if turn < 2 else f"Thought: Next.\nAction: {plan[min(turn - 2, len(plan) - 1)]}"

    return ChatServer(answer)


async def played(home: Path, folder: Path, seed: int, *more: str) -> Path:
    async with erring(plans(seed)).running() as server:
        words = [
            "run",
            "--model",
            server.url,
            "--model-name",
            "toy",
            "--suite",
            "open",
            "--suite-seed",
            str(seed),
        ]
        words += ["--tasks", "alfworld:0-2", "-o", str(folder), *more]
        assert await asyncio.to_thread(main, words) == 0
    return folder


async def test_good_episodes_become_samples_with_their_errors_marked(home: Path, tmp_path: Path) -> None:
    run = await played(home, tmp_path / "run", SEED)
    path = tmp_path / "good.jsonl"
    assert main(["refine", "from-runs", str(run), "-o", str(path)]) == 0
    conversations = list(read_data(path, []))
    assert len(conversations) == 3
    for conversation, episode in zip(
        conversations, sorted(read_episodes(run), key=lambda e: e.task_id), strict=True
    ):
        turns = conversation.player_turns
        assert [turn.error for turn in turns[:3]] == [("invalid",), ("format",), ()]
        assert [turn.loss for turn in turns[:3]] == [False, False, True]
        assert [turn.refine for turn in turns[:4]] == [False, False, True, False]
        assert conversation.task_hash == episode.task_hash
        assert conversation.messages[-1].role == "assistant"
        assert [react.parse(turn.content).action for turn in turns] == [turn.action for turn in episode.turns]
    manifest = read_manifest(path)
    assert manifest is not None
    assert manifest["made"]["tally"] == {"episodes": 3, "kept": 3, "not_kept": {}}


async def test_an_acts_conversation_is_the_one_that_was_played_and_what_is_no_chat_is_refused(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, path = await played(home, tmp_path / "run", SEED, "--agent", "act"), tmp_path / "good.jsonl"
    assert main(["refine", "from-runs", str(run), "-o", str(path)]) == 0
    (conversation, *_) = read_data(path, [])
    assert "Thought:" not in "".join(m.content for m in conversation.messages if m.role != "assistant")
    other = await played(home, tmp_path / "other", SEED, "--agent", "window")
    assert main(["refine", "from-runs", str(other), "-o", str(path)]) == 2
    assert "react and act" in capsys.readouterr().err


async def test_tasks_that_are_evaluated_stay_out(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = await played(home, tmp_path / "run", 0)
    path = tmp_path / "good.jsonl"
    assert main(["refine", "from-runs", str(run), "-o", str(path)]) == 2
    assert "evaluated on" in capsys.readouterr().err
    assert not path.exists()
    assert main(["refine", "from-runs", str(run), "--allow-eval-tasks", "-o", str(path)]) == 0
    assert len(path.read_text().splitlines()) == 3


async def test_a_valid_turn_without_effect_is_a_logic_error(home: Path, tmp_path: Path) -> None:
    run = await played(home, tmp_path / "run", SEED)
    lines = []
    for line in (run / EPISODES).read_text().splitlines():
        episode = json.loads(line)
        episode["turns"][2]["no_effect"] = True
        lines.append(json.dumps(episode) + "\n")
    (run / EPISODES).write_text("".join(lines))
    path = tmp_path / "good.jsonl"
    assert main(["refine", "from-runs", str(run), "-o", str(path)]) == 0
    for conversation in read_data(path, []):
        turns = conversation.player_turns
        assert [turn.error for turn in turns[:4]] == [("invalid",), ("format",), ("logic",), ()]
        assert [turn.loss for turn in turns[:4]] == [False, False, False, True]
        assert [turn.refine for turn in turns[:5]] == [False, False, False, True, False]


async def test_every_published_suite_stays_out(home: Path, tmp_path: Path) -> None:
    run = await played(home, tmp_path / "run", SEED)
    text = (run / EPISODES).read_text()
    assert text.count('"suite":"open"') == 3
    (run / EPISODES).write_text(text.replace('"suite":"open"', '"suite":"hotpotqa"'))
    assert main(["refine", "from-runs", str(run), "-o", str(tmp_path / "good.jsonl")]) == 2


def test_keep_is_success_or_a_least_progress() -> None:
    assert parse_keep("success") == Keep()
    assert parse_keep("progress>=0.5") == Keep(0.5)
    for text in ("progress>0.5", "progress>=2", "progress>=1.5", "all"):
        with pytest.raises(UserError, match="progress>=X"):
            parse_keep(text)


def test_a_played_trajectory_opens_with_its_own_progress(tmp_path: Path) -> None:
    turns = [read_turn(value, place) for place, value in enumerate(TRAJECTORY)]
    script = read_script(SCRIPT)
    path = tmp_path / "data.jsonl"
    made = convert_trajectory({"key": "persona-1", "persona": "p", "calls": 1}, turns, script)
    write_data(path, [made], {})
    with open_as_runs([path], []) as (folder,):
        (episode,) = read_episodes(folder)
    assert [turn.progress for turn in episode.turns] == [each["progress_rate"] for each in TRAJECTORY[2::2]]
    assert episode.success
    assert episode.goal == script.goal


def test_a_data_set_opens_like_a_run(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    assert (
        main(
            [
                "refine",
                "grounded",
                "--tasks",
                "alfworld",
                "--suite-seed",
                str(SEED),
                "-n",
                "4",
                "-o",
                str(path),
            ]
        )
        == 0
    )
    conversations = list(read_data(path, []))
    hostile = Conversation(
        "x",
        "general",
        "</script><b>",
        None,
        conversations[0].messages,
        {"kind": "<i>"},
    )
    write_data(path, [*conversations, hostile], (read_manifest(path) or {})["made"])
    with open_as_runs([path], []) as (folder,):
        episodes = list(read_episodes(folder))
    assert len(episodes) == 5
    for conversation, episode in zip(conversations, episodes, strict=False):
        assert [t.thought for t in episode.turns] == [
            react.parse(m.content).thought for m in conversation.player_turns
        ]
        assert [bool(t.format_errors) for t in episode.turns] == [
            bool(m.error) for m in conversation.player_turns
        ]
        assert episode.success
    page = tmp_path / "page.html"
    assert main(["report", str(path), "-o", str(page)]) == 0
    assert "</script><b>" not in page.read_text(encoding="utf-8")


def test_a_file_that_is_no_data_set_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"a": 1}) + "\n")
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 2
    assert "evalharness refine read" in capsys.readouterr().err
