"""A vLLM that is killed in the middle of a run is started again, and the run ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from command_line import finished, start

from evalharness.store import read_episodes

from .processes import serving

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


async def test_a_killed_vllm_is_restarted_and_the_same_turns_are_asked_again(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    """The engine process gets SIGKILL mid-turn; no episode fails, none starts over, and the six greedy samples of a
    task are the same whether they were played before, across or after the restart."""
    name = f"tiny-{tmp_path.name}-{time.time_ns()}"
    run = tmp_path / "run"
    options = (
        "run", "--model", tiny_checkpoint, "--model-name", name, "--vllm", server_python, "--suite", "open",
        "--tasks", "compass", "--samples", 6, "--max-turns", 4, "--max-tokens", 24, "--concurrency", 2, "-o", run,
    )  # fmt: skip
    process = await start(environment, *options)
    ended = asyncio.create_task(process.communicate())
    while finished(run) < 3:
        await asyncio.sleep(0.1)
        assert not ended.done(), (await ended)[1].decode()
    [engine] = [p for p in serving(name) if p.is_running() and "EngineCore" in p.name()]
    engine.kill()
    _, stderr = await ended
    assert process.returncode == 0, stderr.decode()
    played = [(episode.task_id, episode.sample) for episode in read_episodes(run)]
    assert len(played) == len(set(played)) == 120
    assert not serving(name)
    events = json.loads((run / "summary.json").read_text())["performance"]["events"]
    assert "vLLM died" in events[0]["event"]
    assert "restart 1 of 3" in events[0]["event"]
    assert "is up again" in events[1]["event"]
    assert len(events) == 2

    replies: dict[str, set[tuple[str, ...]]] = {}
    for episode in read_episodes(run):
        replies.setdefault(episode.task_id, set()).add(tuple(turn.reply for turn in episode.turns))
    assert {len(different) for different in replies.values()} == {1}
    assert not (run / "errors.jsonl").exists()
    server = json.loads((run / "summary.json").read_text())["performance"]["server"]
    assert server["generation_tokens_per_s"] > 0
    assert 0 < server["prefix_cache_hit_rate"] < 1
