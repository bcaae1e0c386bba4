"""A vLLM that is killed in the middle of a run is started again, and the run ends as if nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from .served_run import begin

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


async def test_a_killed_vllm_is_restarted_and_the_same_turns_are_asked_again(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    """The engine process gets SIGKILL mid-turn; no episode fails, none starts over, and the three greedy samples of a
    task are the same whether they were played before, across or after the restart."""
    run = await begin(environment, tmp_path / "run", tiny_checkpoint, server_python, samples=3)
    [engine] = [p for p in run.servers() if p.is_running() and "EngineCore" in p.name()]
    engine.kill()
    _, stderr = await run.ended
    assert run.process.returncode == 0, stderr.decode()
    played = run.played()
    assert len(played) == len(set(played)) == 24
    assert not run.servers()
    events = run.events()
    assert "vLLM died" in events[0]
    assert "restart 1 of 3" in events[0]
    assert "is up again" in events[1]
    assert len(events) == 2
    assert run.samples_agree()
    assert not (run.folder / "errors.jsonl").exists()
    server = run.summary()["performance"]["server"]
    assert server["generation_tokens_per_s"] > 0
    assert 0 < server["prefix_cache_hit_rate"] < 1
