"""A checkpoint's server on a node of a real Ray cluster: separate processes on one machine, a real vLLM."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import psutil
import pytest
from command_line import start
from ray_cluster import AUTHENTICATION, Node, ray_cluster

from evalharness.store import read_episodes

from .processes import gone
from .test_run_with_vllm import lines, serving

pytestmark = [pytest.mark.vllm, pytest.mark.slow]


def is_below(process: psutil.Process, node: Node) -> bool:
    return node.raylet in process.parents()


async def test_a_server_on_a_node_moves_to_another_when_the_node_dies(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    """The node that holds vLLM is killed in the middle. Ray starts it on the other one, the same turns are asked
    again, no episode fails for want of a model, and greedy samples agree whatever server they were played at."""
    name = f"tiny-{tmp_path.name}-{time.time_ns()}"
    run = tmp_path / "run"
    variables = environment | AUTHENTICATION
    with ray_cluster((0, 1, 1)) as cluster:
        process = await start(
            variables, "run", "--model", tiny_checkpoint, "--model-name", name, "--vllm", server_python,
            "--suite", "open", "--tasks", "compass", "--samples", 6, "--max-turns", 4, "--max-tokens", 24,
            "--concurrency", 2, "--attempts", 6, "--cluster", cluster.address, "-o", run,
        )  # fmt: skip
        ended = asyncio.create_task(process.communicate())
        while lines(run / "episodes.jsonl") < 3:
            await asyncio.sleep(0.1)
            assert not ended.done(), (await ended)[1].decode()
        servers = serving(name)
        [doomed] = [n for n in cluster.nodes if any(is_below(server, n) for server in servers)]
        session = json.loads((run / "manifest.json").read_text())["sessions"][0]["policy"]
        assert await status_without_key(session["servers"][0]) == 401
        doomed.kill()
        _, stderr = await ended
        assert process.returncode == 0, stderr.decode()
        assert gone(lambda: serving(name))
    played = [(episode.task_id, episode.sample) for episode in read_episodes(run)]
    assert len(played) == len(set(played)) == 120
    replies: dict[str, set[tuple[str, ...]]] = {}
    for episode in read_episodes(run):
        replies.setdefault(episode.task_id, set()).add(tuple(turn.reply for turn in episode.turns))
    assert {len(different) for different in replies.values()} == {1}
    events = [
        event["event"] for event in json.loads((run / "summary.json").read_text())["performance"]["events"]
    ]
    assert "died" in events[0]
    assert "is up again" in events[-1]
    assert (run / "server.log").read_text().count("Started server process") >= 2  # of both nodes


async def status_without_key(base_url: str) -> int:
    import aiohttp

    url = base_url.removesuffix("/v1") + "/invocations"
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as response:
        return response.status
