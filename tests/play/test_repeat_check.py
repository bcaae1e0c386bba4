"""`--repeat-check`: turns of the finished episodes are asked again, and replies that differ are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from against_server import evaluated
from chat_server import ChatServer

from evalharness.checks.verify import verify
from evalharness.config import RunConfig
from evalharness.records.store import read_episodes, read_manifest
from evalharness.results.terminal.table import notes

COMMON: dict[str, Any] = {"tasks": "pddl:0-1", "max_turns": 3}


class _Answers:
    """Replies alike, or otherwise, to messages that it was sent before."""

    def __init__(self, *, repeats: bool) -> None:
        self.repeats = repeats
        self.seen: list[str] = []

    def __call__(self, request: dict[str, Any]) -> str:
        messages = json.dumps(request["messages"])
        known, _ = messages in self.seen, self.seen.append(messages)
        return "Thought: again\nAction: look" if known and not self.repeats else "Thought: t\nAction: look"


async def test_replies_that_repeat_differ_in_no_turn_and_no_episode_is_added(tmp_path: Path) -> None:
    answer = _Answers(repeats=True)
    async with ChatServer(answer=answer).running() as server:
        outcome = await evaluated(server, tmp_path / "run", repeat_check=4, **COMMON)
    check = read_manifest(tmp_path / "run").repeat_check
    assert check is not None
    assert (check.asked, check.differed) == (4, 0)
    assert len(list(read_episodes(tmp_path / "run"))) == 2
    assert outcome.summary.turns == 6
    assert any("4 greedy replies" in line and "0 differed" in line for line in notes(outcome.summary, {}))
    assert not verify(tmp_path / "run").findings


async def test_a_finished_run_is_checked_once_and_replies_that_differ_are_counted(tmp_path: Path) -> None:
    answer = _Answers(repeats=False)
    async with ChatServer(answer=answer).running() as server:
        await evaluated(server, tmp_path / "run", **COMMON)
        played = len(answer.seen)
        outcome = await evaluated(server, tmp_path / "run", repeat_check=3, **COMMON)
        again = answer.seen[played:]
        await evaluated(server, tmp_path / "run", repeat_check=3, **COMMON)
        assert answer.seen[played:] == again
    assert outcome.summary.repeat_check is not None
    assert (outcome.summary.repeat_check.asked, outcome.summary.repeat_check.differed) == (3, 3)
    assert set(again) <= set(answer.seen[:played])


def test_only_greedy_replies_of_a_server_are_asked_again() -> None:
    for options, why in (
        ({"model": "oracle"}, "no server"),
        ({"model": "org/x", "temperature": 1.0}, "greedy"),
    ):
        config = RunConfig.of(**options, repeat_check=3)
        assert config.repeat_turns == 0
        assert why in config.find_probable_mistakes()[0]
