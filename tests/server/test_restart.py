"""A vLLM that is killed in the middle of a run is started again, and the run ends as if nothing had happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.store import read_episodes

from .served_run import begin

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


async def test_a_killed_vllm_is_restarted_and_the_same_turns_are_asked_again(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    """The engine process gets SIGKILL mid-turn; no episode fails, none starts over, and the six greedy samples of a
    task are the same whether they were played before, across or after the restart."""
    run = await begin(environment, tmp_path / "run", tiny_checkpoint, server_python, samples=6)
    [engine] = [p for p in run.servers() if p.is_running() and "EngineCore" in p.name()]
    engine.kill()
    _, stderr = await run.ended
    assert run.process.returncode == 0, stderr.decode()
    played = run.played()
    assert len(played) == len(set(played)) == 120
    assert not run.servers()
    events = json.loads((run.folder / "summary.json").read_text())["performance"]["events"]
    assert "vLLM died" in events[0]["event"]
    assert "restart 1 of 3" in events[0]["event"]
    assert "is up again" in events[1]["event"]
    assert len(events) == 2

    replies: dict[str, set[tuple[str, ...]]] = {}
    for episode in read_episodes(run.folder):
        replies.setdefault(episode.task_id, set()).add(tuple(turn.reply for turn in episode.turns))
    assert {len(different) for different in replies.values()} == {1}
    assert not (run.folder / "errors.jsonl").exists()
    server = json.loads((run.folder / "summary.json").read_text())["performance"]["server"]
    assert server["generation_tokens_per_s"] > 0
    assert 0 < server["prefix_cache_hit_rate"] < 1
