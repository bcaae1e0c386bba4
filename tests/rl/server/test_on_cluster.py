"""Environments on the nodes of a real Ray cluster, behind one server: every session keeps its world on its node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from aiohttp import ClientSession
from command_line import evalharness, surroundings
from env_server import COMPASS, connect, serving
from ray_cluster import AUTHENTICATION, RayCluster, ray_cluster

pytestmark = pytest.mark.slow

RIGHT = {"text": "Thought: that way\nAction: turn right"}


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    with ray_cluster((1, 1)) as running:
        yield running


async def test_episodes_of_a_node_that_dies_go_on_on_another(tmp_path: Path, cluster: RayCluster) -> None:
    """South is two turns from north: only a world that remembers the first turn is solved by the second."""
    variables = surroundings(tmp_path) | AUTHENTICATION
    with serving(variables, *COMPASS, "--sessions", 16, "--cluster", cluster.address) as server:
        async with ClientSession() as client:
            talk = await connect(client, server.url)
            opened = (await talk.ask("reset_many", episodes=[{"index": 2}] * 16))["data"]
            assert ["observation" in each for each in opened] == [True] * 16
            assert not psutil.Process(server.pid).children()
            head, doomed = cluster.nodes
            assert head.workers()
            gone = doomed.workers()
            assert gone
            first = (await talk.ask("step_many", replies=[RIGHT] * 16))["data"]
            assert [each["done"] for each in first] == [False] * 16
            doomed.kill()
            assert not psutil.wait_procs(gone, timeout=60)[1]
            second = (await talk.ask("step_many", replies=[RIGHT] * 16))["data"]
            assert [(each["reward"], each["done"]) for each in second] == [(1.0, True)] * 16
            await talk.socket.close()
        workers = head.workers()
    assert not psutil.wait_procs(workers, timeout=60)[1]


def test_a_cluster_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    done = evalharness(surroundings(tmp_path), "env", "serve", *COMPASS, "--cluster", "127.0.0.1:9")
    assert done.returncode == 2
    assert "127.0.0.1:9" in done.stderr
