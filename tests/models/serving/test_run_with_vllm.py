"""The whole line: the command starts a real vLLM for a checkpoint, plays, scores, and takes the server down again,
whatever is killed in between."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest
from command_line import evalharness

from .served_run import begin, go_on

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.smoke]


async def test_a_checkpoint_is_served_killed_resumed_restarted_and_scored(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    """The command gets SIGKILL in the middle. The same one goes on, and there the engine gets SIGKILL in mid-turn: no
    episode fails, none starts over, and the four greedy samples of a task are the same, whichever of the three servers
    they were played at."""
    run = await begin(environment, tmp_path / "run", tiny_checkpoint, server_python, samples=4)
    servers = run.servers()
    assert len(servers) >= 2  # the API server and its engine at least
    run.process.kill()
    await run.ended
    assert not psutil.wait_procs(servers, timeout=30)[1]
    kept = run.played()
    assert 0 < len(kept) < 32  # killed in the middle

    run = await go_on(environment, run)
    [engine] = [p for p in run.servers() if p.is_running() and "EngineCore" in p.name()]
    engine.kill()
    _, stderr = await run.ended
    assert run.process.returncode == 0, stderr.decode()
    assert not run.servers()
    played = run.played()
    assert played[: len(kept)] == kept
    assert len(played) == len(set(played)) == 32
    assert run.samples_agree()
    assert not (run.folder / "errors.jsonl").exists()
    died, up_again = run.events()
    assert "vLLM died" in died
    assert "restart 1 of 3" in died
    assert "again" in up_again
    summary = run.summary()
    assert summary["tokens"]["completion"] > 0
    server = summary["performance"]["server"]
    assert server["generation_tokens_per_s"] > 0
    assert 0 < server["prefix_cache_hit_rate"] < 1
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert len(manifest["identity"]["model"]["checkpoint_sha256"]) == 64
    assert manifest["sessions"][1]["policy"]["vllm"]
    assert "vLLM" in (run.folder / "server.log").read_text()


def test_a_model_without_server_is_told_the_command(
    environment: dict[str, str], tiny_checkpoint: Path
) -> None:
    variables = {**environment, "PATH": "/usr/bin:/bin"}
    done = evalharness(variables, "run", "--model", tiny_checkpoint, "--suite", "open", "--tasks", "compass")
    assert done.returncode == 2
    assert "evalharness server install" in done.stderr
