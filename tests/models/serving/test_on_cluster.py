"""A checkpoint's server on a node of a real Ray cluster: separate processes on one machine, a real vLLM."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest
from ray_cluster import AUTHENTICATION, Node, ray_cluster

from .processes import gone
from .served_run import begin

pytestmark = [pytest.mark.vllm, pytest.mark.slow(150)]


def is_below(process: psutil.Process, node: Node) -> bool:
    return node.raylet in process.parents()


async def test_a_server_on_a_node_moves_to_another_when_the_node_dies(
    environment: dict[str, str], tmp_path: Path, tiny_checkpoint: Path, server_python: Path
) -> None:
    """The node that holds vLLM is killed in the middle. Ray starts it on the other one, the same turns are asked
    again, no episode fails for want of a model, and greedy samples agree whatever server they were played at."""
    variables = environment | AUTHENTICATION
    with ray_cluster((0, 1, 1)) as cluster:
        run = await begin(
            variables, tmp_path / "run", tiny_checkpoint, server_python, "--attempts", 6, "--cluster", cluster.address,
            samples=2,
        )  # fmt: skip
        servers = run.servers()
        [doomed] = [n for n in cluster.nodes if any(is_below(server, n) for server in servers)]
        session = json.loads((run.folder / "manifest.json").read_text())["sessions"][0]["policy"]
        assert await status_without_key(session["servers"][0]) == 401
        doomed.kill()
        _, stderr = await run.ended
        assert run.process.returncode == 0, stderr.decode()
        assert gone(run.servers)
    played = run.played()
    assert len(played) == len(set(played)) == 16
    assert run.samples_agree()
    events = run.events()
    # Who notices first, the one who watches the node or an episode that gets no answer, is a matter of moments.
    assert "died" in events[0] or "answers" in events[0]
    assert "again" in events[-1]
    assert (run.folder / "server.log").read_text().count("Started server process") >= 2  # of both nodes


async def status_without_key(base_url: str) -> int:
    import aiohttp

    url = base_url.removesuffix("/v1") + "/invocations"
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as response:
        return response.status
