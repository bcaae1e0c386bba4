"""The managed server with the real vLLM and a tiny random model. One start serves most of these tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import pytest_asyncio

from evalharness.models.serving.checkpoint import CheckpointError
from evalharness.models.serving.find import find_server
from evalharness.models.serving.managed import ManagedServer

from .processes import gone, in_session

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

NAME = "tiny-of-test-managed"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def statuses() -> list[str]:
    return []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    tiny_checkpoint: Path, statuses: list[str], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ManagedServer]:
    server = ManagedServer(
        command=find_server(None),
        model=tiny_checkpoint,
        served_name=NAME,
        log_path=tmp_path_factory.mktemp("run") / "server.log",
        on_status=statuses.append,
    )
    await server.start()
    session = session_of(server)
    yield server
    await server.stop()
    assert not in_session(session)


def session_of(server: ManagedServer) -> int:
    """The session in which the server's whole tree lives: its supervisor's."""
    assert server._process is not None
    return os.getsid(server._process.pid)


async def chat(server: ManagedServer, **options: object) -> dict[str, object]:
    body = {"model": NAME, "messages": [{"role": "user", "content": "Look around."}], "max_tokens": 8}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{server.base_url}/chat/completions", json=body | options) as response,
    ):
        response.raise_for_status()
        answer: dict[str, object] = await response.json()
        return answer


async def test_it_answers_and_says_what_it_is(server: ManagedServer, statuses: list[str]) -> None:
    answer = await chat(server, temperature=0, seed=0)
    assert answer["model"] == NAME
    assert (await chat(server, temperature=0, seed=0))["choices"] == answer["choices"]
    assert server.alive()
    assert server.failure() is None
    assert server.base_url == f"http://127.0.0.1:{server.port}/v1"
    # The checkpoint has 4,096 positions, fewer than the default of 8,192.
    assert server.max_model_len == 4096
    assert server.argv[server.argv.index("--max-model-len") + 1] == "4096"
    assert server.version == find_server(None).version
    assert (
        len(in_session(session_of(server))) >= 4
    )  # the supervisor, the API server, what tracks its resources, the engine
    assert server.log_path.stat().st_size > 0
    assert statuses[0].startswith("starting vLLM")
    assert len(set(statuses)) >= 3  # a tiny model may pass a stage between two looks at the log
    assert "ready" in statuses[-1]


async def test_it_listens_on_loopback_only(server: ManagedServer) -> None:
    listening = set()
    for process in in_session(session_of(server)):
        for connection in process.net_connections(kind="inet"):
            if connection.status == psutil.CONN_LISTEN:
                listening.add((connection.laddr.ip, connection.laddr.port))
    assert ("127.0.0.1", server.port) in listening
    assert {address for address, _ in listening} <= {"127.0.0.1", "::1"}


async def test_requests_do_not_swell_the_log(server: ManagedServer) -> None:
    before = server.log_path.stat().st_size
    for _ in range(20):
        await chat(server)
    # vLLM's own statistics come once in ten seconds; a line for each request would be far more.
    assert server.log_path.stat().st_size - before < 20 * 60


async def test_long_seeded_requests_at_once_are_all_answered(server: ManagedServer) -> None:
    """As the samples of a Best-of-N. Together they exceed what one step of the engine reads; a prompt that is read in
    pieces would end it (`--no-enable-chunked-prefill`)."""

    async def ask(seed: int) -> object:
        text = f"{seed} " + "You see a mug, a plate and an apple. " * 150
        messages = [{"role": "user", "content": text}]
        return (await chat(server, temperature=1, seed=seed, messages=messages))["choices"]

    answers = await asyncio.gather(*(ask(seed) for seed in range(12)))
    assert len({str(answer) for answer in answers}) > 6
    assert await ask(3) == answers[3]
    assert server.failure() is None


async def test_a_spoilt_checkpoint_is_refused_before_anything_starts(
    server_python: Path, tmp_path: Path
) -> None:
    (tmp_path / "model").mkdir()
    broken = ManagedServer(
        command=find_server(None), model=tmp_path / "model", served_name="x", log_path=tmp_path / "log"
    )
    with pytest.raises(CheckpointError, match="is empty"):
        await broken.start()
    assert not (tmp_path / "log").exists()


async def test_its_sudden_death_is_noticed_and_explained(server: ManagedServer) -> None:
    """The last test of this server. That it is started again: test_run_with_vllm.py."""
    session = session_of(server)
    next(process for process in in_session(session) if "EngineCore" in process.name()).kill()
    await asyncio.wait_for(server.wait_dead(), 60)
    assert not server.alive()
    failure = server.failure()
    assert failure is not None
    assert failure.startswith("vLLM died")
    assert "unexpectedly" in failure
    assert gone(lambda: in_session(session), within=5)
