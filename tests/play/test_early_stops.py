"""A run that goes wrong says so after twenty replies, and stops where that was asked for; so does one out of time."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from chat_server import ChatServer
from command_line import evalharness, run_compass

from evalharness.base.errors import UserError
from evalharness.config import make_config
from evalharness.play.time_limit import TimeLimit

JSON_REPLY = '{"thought": "I turn", "action": "turn left"}'


async def test_the_reason_stands_on_the_terminal_in_the_summary_and_in_show(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(answer=lambda request: JSON_REPLY).running() as server:
        options = ("--model", server.url, "--model-name", "toy", "--max-turns", 5, "--concurrency", 2)
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options, "--limit", 6)
    assert done.returncode == 0, done.stderr
    assert "30 replies" in " ".join(done.stdout.split())
    assert "replies contain JSON" in " ".join(done.stderr.split()), "and while it went on"
    trouble = json.loads((tmp_path / "run" / "summary.json").read_text())["format_trouble"]
    assert (trouble["turns"], trouble["errors"], trouble["causes"]) == (30, 30, {"json": 30})
    shown = evalharness(environment, "show", tmp_path / "run").stdout
    assert trouble["said"] in " ".join(shown.split())


async def test_a_run_stops_where_more_replies_than_that_are_format_errors(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(answer=lambda request: JSON_REPLY).running() as server:
        options = ("--model", server.url, "--model-name", "toy", "--concurrency", 1, "--max-turns", 8)
        settings = tmp_path / "settings.yaml"
        settings.write_text("stop_on_format_errors: 0.5\n")
        stop = ("--config", settings)
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options, *stop)
        assert len(server.requests) == 1 + 20
        assert done.returncode == 3
        assert "20 replies" in done.stderr
        assert "stopped early: every one" in evalharness(environment, "show", tmp_path / "run").stdout
        server.answer = lambda request: "Thought: t\nAction: turn left"
        done = await asyncio.to_thread(run_compass, environment, tmp_path / "run", *options)
    assert done.returncode == 0, "the same run continues without the option"
    assert "stopped" not in json.loads((tmp_path / "run" / "summary.json").read_text())


async def test_a_run_out_of_time_is_continued_by_the_same_command(
    environment: dict[str, str], tmp_path: Path
) -> None:
    options = ("--model-name", "toy", "--concurrency", 2)
    async with ChatServer(latency=1.0).running() as server:
        model = ("--model", server.url, *options)
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", *model, "--time-limit", "3", "--limit", "20"
        )
        assert done.returncode == 3
        assert "--time-limit" in done.stderr
        server.latency = 0.0
        done = await asyncio.to_thread(
            run_compass, environment, tmp_path / "run", *model, "--time-limit", "1h", "--limit", "20"
        )
        assert done.returncode == 0, done.stderr


def test_a_time_is_written_as_people_write_it() -> None:
    for text, seconds in (("90", 90.0), ("1.5", 1.5), ("90m", 5400.0), ("2h30m", 9000.0), ("1h 5s", 3605.0)):
        assert make_config({"model": "oracle", "time_limit": text}).limits.time_limit == seconds
    for text in ("soon", "2d", "h", "-5"):
        with pytest.raises(UserError, match="--time-limit"):
            make_config({"model": "oracle", "time_limit": text})


def test_a_limit_of_time_counts_from_the_start_of_the_command() -> None:
    now = 100.0
    limit = TimeLimit(60.0, clock=lambda: now, began=100.0)
    assert (limit.left, limit.stop_reason()) == (60.0, None)
    now = 160.0
    assert limit.left == 0.0
    assert "60 s (--time-limit)" in str(limit.stop_reason())
    assert TimeLimit(None).stop_reason() is None
