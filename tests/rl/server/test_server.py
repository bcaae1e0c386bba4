"""The server under clients that are polite, that vanish, that flood it, and that are strangers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from command_line import evalharness, surroundings
from env_server import COMPASS, EnvServer, Talk, connect, notes, serving

RIGHT = "Thought: that way\nAction: turn right"


@pytest.fixture(scope="module")
def surrounded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return surroundings(tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def server(surrounded: dict[str, str]) -> Iterator[EnvServer]:
    with serving(surrounded, *COMPASS, "--sessions", 3, "--waiting", 1, "--max-turns", 4) as found:
        yield found


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


async def test_an_episode_has_the_prompt_the_corrections_and_the_rewards_of_an_evaluation(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    opening = await talk.reset(index=2)
    assert (opening["done"], opening["reward"]) == (False, None)
    roles = [message["role"] for message in opening["observation"]["messages"]]
    assert roles == ["system", "user"]
    assert opening["observation"]["text"].endswith("Goal: face south\nObservation: You face north.")
    silent = await talk.step("I would rather not.")
    assert silent["observation"]["text"].startswith("Observation: Your reply was not understood")
    first = await talk.step(f"{RIGHT}\nAction: turn left")
    assert first["observation"]["messages"] == [{"role": "user", "content": "Observation: You face east."}]
    assert first["observation"]["kept"] == RIGHT
    assert (first["done"], first["reward"]) == (False, 0.0)
    second = await talk.step(RIGHT)
    assert (second["done"], second["reward"]) == (True, 1.0)
    state = await talk.state()
    assert state["task_id"] == "compass/open-0/002"
    assert (state["success"], state["progress"], state["ended_by"]) == (True, 1.0, "success")
    assert (state["step_count"], state["valid_actions"]) == (3, 2)
    assert state["format_errors"] == {"no_action": 1, "several_actions": 1}
    assert state["evaluation_tasks"] is True
    again = await talk.ask("step", text=RIGHT)
    assert "reset" in again["data"]["message"]
    # What the agent may see has no score in it.
    assert not {"progress", "success"} & {*opening["observation"], *second["observation"]}
    await talk.socket.close()


async def test_progress_gain_and_the_turn_limit(server: EnvServer, client: ClientSession) -> None:
    talk = await connect(client, server.url)
    await talk.reset(index=2, reward="progress_gain")
    rewards = [(await talk.step(RIGHT))["reward"] for _ in range(2)]
    assert rewards == [0.0, 1.0]
    await talk.reset(task_id="compass/open-1/003", split="validation", episode_id="mine")
    ends = [await talk.step("Action: turn up") for _ in range(4)]
    assert [end["done"] for end in ends] == [False, False, False, True]
    state = await talk.state()
    assert (state["ended_by"], state["success"], state["episode_id"]) == ("turn_limit", False, "mine")
    await talk.socket.close()


async def test_clients_that_name_no_task_get_all_of_them_in_turn(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    met = []
    for _ in range(20):
        await talk.reset(split="validation")
        met.append((await talk.state())["task_id"])
    assert sorted(met) == [f"compass/open-1/{i:03d}" for i in range(20)]
    drawn = []
    for seed in (5, 5, 6):
        await talk.reset(seed=seed)
        drawn.append((await talk.state())["task_id"])
    assert drawn[0] == drawn[1] != drawn[2]
    await talk.socket.close()


async def test_the_task_interface(server: EnvServer, client: ClientSession) -> None:
    async def post(path: str, **body: object) -> tuple[int, dict[str, object]]:
        async with client.post(f"{server.url}/{path}", json=body) as response:
            return response.status, await response.json(content_type=None)

    async with client.get(f"{server.url}/compass/splits") as response:
        assert [split["type"] for split in await response.json()] == ["train", "validation"]
    assert (await post("compass/num_tasks", split="train"))[1] == {"num_tasks": 20}
    status, answer = await post("compass/task", split="validation", index=19)
    assert status == 200
    task = answer["task"]
    assert isinstance(task, dict)
    assert (task["id"], task["goal"]) == ("compass/open-1/019", "face west")
    assert task["system_prompt"] == "You are a navigator."
    _, answer = await post("compass/task_range", split="train", start=18)
    assert isinstance(answer["tasks"], list)
    assert [each["index"] for each in answer["tasks"]] == [18, 19]
    assert (await post("compass/task", split="train", index=20))[0] == 400
    assert (await post("compass/task", split="train", index=-1))[0] == 400
    assert (await post("compass/tasks", split="test"))[0] == 400
    status, first = await post("reset", index=0)
    assert status == 200
    assert "observation" in first
    assert (await post("step", action={"text": RIGHT}))[0] == 409


@pytest.mark.parametrize("how", ["vanish", "close"])
async def test_a_client_that_leaves_frees_its_session(
    server: EnvServer, client: ClientSession, how: str
) -> None:
    for _ in range(4):  # more than there are sessions
        talk = await connect(client, server.url)
        await talk.reset(index=0)
        await talk.socket.send_str(json.dumps({"type": "step", "data": {"text": RIGHT}}))
        if how == "vanish":
            talk.vanish()
        else:
            await talk.socket.close()
    talk = await connect(client, server.url)
    await talk.reset(index=1)
    assert (await talk.step(RIGHT))["reward"] == 1.0
    await talk.socket.close()


async def test_one_who_vanishes_in_the_middle_of_a_step_ends_nobody_elses_episode(
    server: EnvServer, client: ClientSession
) -> None:
    """Both environments are in one worker process, which a call that is abandoned must not end."""
    stays, goes = await connect(client, server.url), await connect(client, server.url)
    await stays.reset(index=2)
    await goes.reset(index=3)
    workers = {child.pid for child in psutil.Process(server.pid).children()}
    for _ in range(3):
        await goes.socket.send_str(json.dumps({"type": "step", "data": {"text": RIGHT}}))
    goes.vanish()
    assert (await stays.step(RIGHT))["done"] is False
    assert (await stays.step(RIGHT))["reward"] == 1.0
    assert {child.pid for child in psutil.Process(server.pid).children()} == workers
    await stays.socket.close()


async def test_a_flood_waits_in_a_bounded_queue_and_the_rest_gets_429(
    server: EnvServer, client: ClientSession
) -> None:
    inside = [await connect(client, server.url) for _ in range(3)]
    knocking = {asyncio.ensure_future(connect(client, server.url)) for _ in range(12)}
    refused: set[asyncio.Future[Talk]] = set()
    while len(refused) < 11:
        done, knocking = await asyncio.wait(knocking, return_when=asyncio.FIRST_COMPLETED)
        refused |= done
    for each in refused:
        error = each.exception()
        assert isinstance(error, WSServerHandshakeError)
        assert (error.status, (error.headers or {}).get("Retry-After")) == (429, "1")
    await inside.pop().socket.close()
    (waited,) = knocking
    talk = await waited
    await talk.reset(index=1)
    for each in (talk, *inside):
        await each.socket.close()


async def test_sessions_have_no_ids_that_another_client_could_use(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    await talk.reset(index=2, episode_id="mine")
    with pytest.raises(WSServerHandshakeError) as refused:
        await client.ws_connect(f"{server.url}/ws?session_id=mine")
    assert refused.value.status == 403
    other = await connect(client, server.url)
    await other.reset(index=3, episode_id="mine")
    await other.step(RIGHT)
    assert (await talk.state())["step_count"] == 0
    async with client.get(f"{server.url}/state?session_id=mine") as response:
        assert (await response.json())["episode_id"] is None
    for each in (talk, other):
        await each.socket.close()


async def test_what_is_too_big_is_refused_and_the_server_goes_on(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    await talk.reset(index=2)
    # Too big, it is read no further: the sender may find the connection gone while it is still sending.
    with contextlib.suppress(ConnectionError):
        await talk.socket.send_str(json.dumps({"type": "step", "data": {"text": "a" * 10_000_000}}))
        closed = await talk.socket.receive(timeout=60)
        assert closed.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR)
        assert talk.socket.close_code in (1009, 1006)
    async with client.post(f"{server.url}/reset", data=b'{"x": "' + b"a" * 10_000_000) as response:
        assert response.status == 413
    talk = await connect(client, server.url)
    await talk.reset(index=2)
    answer = await talk.ask("step", text="a" * 500_000)
    assert answer["data"]["code"] == "VALIDATION_ERROR"
    assert len(json.dumps(answer)) < 1000
    assert (await talk.step(RIGHT))["done"] is False
    await talk.socket.close()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("no json", "INVALID_JSON"),
        ("[" * 100_000, "INVALID_JSON"),
        ("[1, 2]", "INVALID_JSON"),
        ('{"type": "reset", "data": 3}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"idx": 3}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"index": 99999}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"index": 1, "task_id": "compass/open-0/001"}}', "VALIDATION_ERROR"),
        ('{"type": "reset", "data": {"family": "chess"}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"text": 3}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"text": "\\ud800"}}', "VALIDATION_ERROR"),
        ('{"type": "step", "data": {"text": "x", "reward": 1}}', "VALIDATION_ERROR"),
        ('{"type": "mcp", "data": {}}', "UNKNOWN_TYPE"),
        ('{"type": ["reset"]}', "UNKNOWN_TYPE"),
        ("{}", "UNKNOWN_TYPE"),
    ],
)
async def test_a_message_that_makes_no_sense_is_answered_and_the_episode_goes_on(
    server: EnvServer, client: ClientSession, sent: str, code: str
) -> None:
    talk = await connect(client, server.url)
    await talk.reset(index=1)
    await talk.socket.send_str(sent)
    answer = await talk.socket.receive_json(timeout=60)
    assert (answer["type"], answer["data"]["code"]) == ("error", code)
    assert (await talk.step(RIGHT))["reward"] == 1.0
    await talk.socket.close()


async def test_binary_messages_and_a_family_that_does_not_fit_are_answered(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    await talk.socket.send_bytes(b"{}")
    assert (await talk.socket.receive_json(timeout=60))["data"]["code"] == "INVALID_JSON"
    answer = await talk.ask("reset", index=1, family="babyai")
    assert "'babyai'" in answer["data"]["message"]
    await talk.socket.close()


async def test_text_of_any_kind_is_survivable(server: EnvServer, client: ClientSession) -> None:
    talk = await connect(client, server.url)
    for text in (
        "",
        "\x00\x1b[31m",
        "*" * 400_000,
        "Action: \u202e\n" * 1000,
        "<think>" * 50_000,
    ):
        await talk.reset(index=1)
        assert (await talk.step(text))["observation"]["text"].startswith("Observation: ")
    await talk.socket.close()


async def test_an_episode_whose_simulator_dies_twice_is_void_and_no_score(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    await talk.reset(index=4)
    answer = await talk.ask("step", text="Action: fault always kill")
    assert answer["data"]["code"] == "EXECUTION_ERROR"
    assert "void: reset" in answer["data"]["message"]
    assert (await talk.state())["task_id"] is None
    await talk.reset(index=1)
    assert (await talk.step(RIGHT))["reward"] == 1.0
    await talk.socket.close()


async def test_posts_that_are_broken_off_leave_no_lines_in_the_log(
    server: EnvServer, client: ClientSession, surrounded: dict[str, str]
) -> None:
    before = notes(surrounded).read_text()
    port = int(server.url.rsplit(":", 1)[1])
    for _ in range(30):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /reset HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    # The server takes them in the order in which they came: this one is after them.
    async with client.get(f"{server.url}/health") as response:
        assert response.status == 200
    assert notes(surrounded).read_text() == before


async def test_pages_of_the_web_and_other_names_get_nothing(server: EnvServer, client: ClientSession) -> None:
    for headers in ({"Origin": "http://evil.example"}, {"Origin": server.url}, {"Host": "evil.example"}):
        async with client.get(f"{server.url}/schema", headers=headers) as response:
            assert response.status == 403
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect(f"{server.url}/ws", headers=headers)
        assert refused.value.status == 403


@pytest.mark.slow
async def test_beyond_this_machine_a_token_is_needed(tmp_path: Path, client: ClientSession) -> None:
    with serving(surroundings(tmp_path), *COMPASS, "--host", "0.0.0.0") as server:
        (token,) = [line.removeprefix("token: ") for line in server.said if line.startswith("token: ")]
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert len(token) >= 32
        for given in ("", "Bearer ", "Bearer wrong", f"Bearer {token}x", token[:-1]):
            async with client.get(f"{url}/schema", headers={"Authorization": given}) as response:
                assert response.status == 401
            with pytest.raises(WSServerHandshakeError) as refused:
                await client.ws_connect(f"{url}/ws", headers={"Authorization": given})
            assert refused.value.status == 401
        talk = await connect(client, url, headers={"Authorization": f"Bearer {token}"})
        await talk.reset(index=0)
        async with client.get(f"{url}/health") as response:  # for whoever keeps it running
            assert await response.json() == {"status": "healthy"}
        await talk.socket.close()


@pytest.mark.slow
async def test_no_process_is_left_when_it_is_killed(tmp_path: Path, client: ClientSession) -> None:
    with serving(surroundings(tmp_path), *COMPASS, survives=False) as server:
        talk = await connect(client, server.url)
        await talk.reset(index=0)
        workers = psutil.Process(server.pid).children()
        assert workers
        os.kill(server.pid, signal.SIGKILL)
        _, alive = await asyncio.to_thread(psutil.wait_procs, workers, 30)
        assert alive == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("compass", "--train-seeds", "0"), "suite seed 0"),
        (("compass", "--train-seeds", "5", "--validation-seeds", "0-3"), "suite seed 0"),
        (("compass", "--suite", "agentboard"), "'agentboard'"),
        (
            ("compass", "--train-seeds", "1-9", "--validation-seeds", "7"),
            "suite seed 7 is in --train-seeds and in",
        ),
        (("compass", "--train-seeds", "1"), "no task"),
        (("compas",), "'compass'"),
        (("compass", "--train-seeds", "x"), "1-4,9"),
        (("compass", "--train-seeds", "9-1"), "9-1"),
        (("compass", "--sessions", "0"), "--sessions"),
        (("compass", "--port", "70000"), "up to 65535"),
        ((*COMPASS, "--host", "203.0.113.1"), "203.0.113.1:8000"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(
    environment: dict[str, str], options: tuple[str, ...], said: str
) -> None:
    done = evalharness(environment, "env", "serve", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_tasks_of_evaluations_are_served_with_a_warning(tmp_path: Path) -> None:
    environment = surroundings(tmp_path)
    with serving(environment, *COMPASS):
        log = notes(environment).read_text()
    assert "WARNING: suite seed 0" in log
    assert "evaluation_tasks" in log
