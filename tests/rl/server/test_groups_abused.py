"""Batched messages of strangers, floods of them, messages that are too big, and thousands of episodes left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest
from aiohttp import ClientSession, WSMsgType
from command_line import surroundings
from env_server import COMPASS, EnvServer, connect, serving

RIGHT = {"text": "Thought: that way\nAction: turn right"}
EIGHT = {"episodes": [{"index": 1}] * 8}
TOKEN = "a token of this test"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnvServer]:
    around = surroundings(tmp_path_factory.mktemp("env")) | {"EVALHARNESS_ENV_TOKEN": TOKEN}
    with serving(around, *COMPASS, "--sessions", 9, "--max-turns", 4) as found:
        yield found


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}) as session:
        yield session


def frame(message: Mapping[str, object]) -> bytes:
    """Of a client, with a mask of zeros."""
    text = json.dumps(message).encode()
    return bytes([0x81, 0x80 | 126]) + len(text).to_bytes(2, "big") + bytes(4) + text


async def upgraded(
    server: EnvServer, given: str, then: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A handshake with the headers `given`, and `then` behind it in the same bytes."""
    address = server.url.removeprefix("http://")
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    upgrade = (
        f"GET /ws HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{given}"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    writer.write(upgrade.encode() + then)
    return reader, writer


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ("", b"401"),
        ("Authorization: Bearer wrong\r\n", b"401"),
        (f"Authorization: Bearer {TOKEN}x\r\n", b"401"),
        (f"Authorization: Bearer {TOKEN}\r\nOrigin: http://evil.example\r\n", b"403"),
    ],
)
async def test_a_stranger_who_does_not_wait_for_the_answer_gets_no_episode(
    server: EnvServer, client: ClientSession, given: str, status: bytes
) -> None:
    """The batched message is behind the handshake in the same bytes."""
    reader, writer = await upgraded(server, given, frame({"type": "reset_many", "data": EIGHT}))
    assert status in await reader.readline()
    said = b""
    with contextlib.suppress(ConnectionError):
        writer.write_eof()
        said = await reader.read()
    assert b"observation" not in said
    writer.close()
    talk = await connect(client, server.url)
    # Whoever comes next has all nine: none is held.
    await talk.many("reset_many", episodes=[{"index": 1}] * 9)
    await talk.socket.close()


@pytest.mark.parametrize(
    "message",
    [
        {"type": "step_many", "data": {"replies": [RIGHT] * 8}},
        {"type": "reset_many", "data": EIGHT},
        {"type": "step_many", "data": {"replies": [RIGHT] * 8, "places": [0] * 8}},
        {"type": "state_many"},
    ],
)
async def test_a_flood_of_batched_messages_holds_up_nobody_and_leaves_nothing(
    server: EnvServer, client: ClientSession, message: dict[str, object]
) -> None:
    """It reads no answer, and vanishes when the server has stopped reading or 300 messages are sent."""
    floods, other = await connect(client, server.url), await connect(client, server.url)
    await other.reset(index=2)
    await floods.many("reset_many", **EIGHT)

    async def flood() -> None:
        for _ in range(300):
            await floods.socket.send_json(message)

    flooding = asyncio.create_task(flood())
    assert (await other.step(RIGHT["text"]))["done"] is False
    assert (await other.step(RIGHT["text"]))["reward"] == 1.0
    flooding.cancel()
    await asyncio.gather(flooding, return_exceptions=True)
    floods.vanish()
    await other.many("reset_many", episodes=[{"index": 1}] * 9)
    answers = await other.many("step_many", replies=[RIGHT] * 9)
    assert [each["reward"] for each in answers] == [1.0] * 9
    await other.socket.close()


async def test_a_batch_that_is_too_big_ends_its_connection_and_frees_its_group(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    await talk.many("reset_many", **EIGHT)
    with contextlib.suppress(ConnectionError):
        await talk.socket.send_json({"type": "step_many", "data": {"replies": [{"text": "a" * 300_000}] * 8}})
        closed = await talk.socket.receive(timeout=60)
        assert closed.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR)
        assert talk.socket.close_code in (1009, 1006)
    other = await connect(client, server.url)
    await other.many("reset_many", episodes=[{"index": 1}] * 9)
    await other.socket.close()


async def test_episodes_of_one_name_are_played_apart(server: EnvServer, client: ClientSession) -> None:
    talk = await connect(client, server.url)
    await talk.many("reset_many", episodes=[{"index": 2, "episode_id": "same"}] * 2)
    await talk.many("step_many", replies=[RIGHT], places=[1])
    states = (await talk.ask("state_many"))["data"]
    assert [(state["episode_id"], state["step_count"]) for state in states] == [("same", 0), ("same", 1)]
    await talk.socket.close()


async def test_batches_before_any_reset_are_answered_in_their_place(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    (answer,) = await talk.many("step_many", replies=[RIGHT])
    assert "reset" in answer["error"]["message"]
    await talk.socket.close()


async def test_pings_are_answered_while_a_group_begins(server: EnvServer) -> None:
    """Clients take a server that answers none for dead: `websockets` after 20 s."""
    ping = bytes([0x89, 0x80]) + bytes(4)
    given = f"Authorization: Bearer {TOKEN}\r\n"
    # In the same bytes: the server has the ping before the group can have begun, however busy the machine is.
    reader, writer = await upgraded(server, given, frame({"type": "reset_many", "data": EIGHT}) + ping)
    async with asyncio.timeout(60):
        await reader.readuntil(b"\r\n\r\n")
        pong = await reader.readexactly(2)
        answer = await reader.readexactly(1)
    assert (pong, answer) == (bytes([0x8A, 0]), bytes([0x81]))
    writer.close()


@pytest.mark.slow
async def test_a_client_that_vanishes_while_2048_episodes_begin_frees_all_of_them(
    tmp_path: Path, client: ClientSession
) -> None:
    around = surroundings(tmp_path)
    options = ("alfworld", "--train-seeds", "0", "--allow-eval-tasks", "--sessions", 2049)
    with serving(around, *options) as server:
        goes, stays = await connect(client, server.url), await connect(client, server.url)
        await stays.reset(index=1)
        await goes.socket.send_json({"type": "reset_many", "data": {"episodes": [{}] * 2048}})
        # Whoever gets an answer now has waited behind resets of the group.
        await stays.reset(index=0)
        assert (await stays.ask("reset_many", episodes=[{}] * 1000))["data"]["code"] == "CAPACITY_REACHED"
        goes.vanish()
        # Takes all sessions, but makes no world: there is no such task.
        answers = await stays.many("reset_many", episodes=[{"index": 1}] + [{"index": 999}] * 2048)
        assert "observation" in answers[0]
        assert all("no task 999" in each["error"]["message"] for each in answers[1:])
        (step,) = await stays.many("step_many", replies=[{"text": "Action: look"}], places=[0])
        assert step["done"] is False
        await stays.socket.close()
