"""Many episodes on one connection: what a group is, what is refused, and what is left when its client vanishes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psutil
import pytest
from aiohttp import ClientSession
from command_line import surroundings
from env_server import COMPASS, EnvServer, connect, serving

RIGHT = {"text": "Thought: that way\nAction: turn right"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnvServer]:
    around = surroundings(tmp_path_factory.mktemp("env"))
    with serving(around, *COMPASS, "--sessions", 8, "--waiting", 1, "--max-turns", 4) as found:
        yield found


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession() as session:
        yield session


async def test_a_group_plays_as_its_episodes_would_alone(server: EnvServer, client: ClientSession) -> None:
    """Also a place that begins again while the others go on."""
    group, alone = await connect(client, server.url), await connect(client, server.url)
    opened = await group.many("reset_many", episodes=[{"index": index} for index in (1, 2, 1)])
    assert opened == [await alone.reset(index=index) for index in (1, 2, 1)]
    first = await group.many("step_many", replies=[RIGHT] * 3)
    assert [each["reward"] for each in first] == [1.0, 0.0, 1.0]
    assert await group.many("reset_many", episodes=[{"index": 1}], places=[2]) == [opened[2]]
    last = await group.many("step_many", replies=[RIGHT] * 2, places=[2, 1])
    assert [(each["reward"], each["done"]) for each in last] == [(1.0, True)] * 2
    states = (await group.ask("state_many"))["data"]
    assert [state["success"] for state in states] == [True] * 3
    assert [state["step_count"] for state in states] == [1, 2, 1]
    (over,) = await group.many("step_many", replies=[RIGHT], places=[0])
    assert over["error"]["code"] == "EXECUTION_ERROR"
    for each in (group, alone):
        await each.socket.close()


async def test_an_episode_whose_simulator_dies_twice_is_named_in_its_place(
    server: EnvServer, client: ClientSession
) -> None:
    """It is not scored, and not missing."""
    talk = await connect(client, server.url)
    await talk.many("reset_many", episodes=[{"index": 1}] * 4)
    answers = await talk.many(
        "step_many", replies=[{"text": "Action: fault always kill"}, RIGHT], places=[0, 3]
    )
    assert answers[0]["error"]["code"] == "EXECUTION_ERROR"
    assert "void: reset" in answers[0]["error"]["message"]
    assert len(answers) == 2
    again = await talk.many("reset_many", episodes=[{"index": 1}] * 4)
    assert ["observation" in answer for answer in again] == [True] * 4
    answers = await talk.many("step_many", replies=[RIGHT] * 4)
    assert [answer["reward"] for answer in answers] == [1.0] * 4
    await talk.socket.close()


async def lost_workers(server: EnvServer, client: ClientSession) -> int:
    async with client.get(f"{server.url}/status") as response:
        return int((await response.json())["families"]["compass"]["lost_workers"])


async def test_episodes_of_a_worker_that_is_killed_go_on_in_another(
    server: EnvServer, client: ClientSession
) -> None:
    """South is two turns from north: only an episode that has its first turn again is solved by the second."""
    talk = await connect(client, server.url)
    await talk.many("reset_many", episodes=[{"index": 2}] * 8)
    await talk.many("step_many", replies=[RIGHT] * 8)
    lost = await lost_workers(server, client)
    one, *others = psutil.Process(server.pid).children()
    assert others
    one.kill()
    answers = await talk.many("step_many", replies=[RIGHT] * 8)
    assert [(each["reward"], each["done"]) for each in answers] == [(1.0, True)] * 8
    states = (await talk.ask("state_many"))["data"]
    assert [state["step_count"] for state in states] == [2] * 8
    assert await lost_workers(server, client) > lost
    await talk.socket.close()


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("reset_many", {"episodes": []}, "at least 1"),
        ("reset_many", {"episodes": [{"idx": 1}]}, "episodes.0.idx"),
        ("reset_many", {"episodes": [{}] * 9}, "9 episodes, but 8 sessions"),
        ("reset_many", {"episodes": [{}] * 9000}, "at most 8192"),
        ("reset_many", {"episodes": [{}], "places": [7]}, "no episode 7: "),
        ("reset_many", {"episodes": [{}], "places": [-1]}, "greater than or equal to 0"),
        ("step_many", {"replies": [RIGHT]}, "1 entries for 2 episodes"),
        ("step_many", {"replies": [RIGHT] * 3}, "3 entries for 2 episodes"),
        ("step_many", {"replies": [RIGHT] * 2, "places": [1, 1]}, "named twice"),
        ("step_many", {"replies": [RIGHT, {"text": 3}]}, "replies.1.text"),
        ("step_many", {"replies": "x"}, "replies"),
        ("step_many", {"replies": {"0": RIGHT, "1": RIGHT}}, "replies: "),
        ("step_many", {"replies": [RIGHT, None]}, "replies.1"),
        ("step_many", {"replies": [RIGHT, [RIGHT]]}, "replies.1"),
        ("step_many", {"replies": [RIGHT, {**RIGHT, "reward": 1}]}, "replies.1.reward"),
        ("step_many", {"replies": [RIGHT] * 2, "places": ["0", "x"]}, "places.0"),
        ("step_many", {"replies": [RIGHT] * 2, "places": [0, True]}, "places.1"),
        ("step_many", {"replies": [{"text": 3}] * 8192}, "replies.0.text"),
        ("step_many", {f"k{key}": 1 for key in range(90_000)}, "more than 256 keys"),
        ("reset_many", {"episodes": [{f"k{key}": 1 for key in range(90_000)}]}, "more than 256 keys"),
        ("reset_many", {"episodes": [{"x" * 200_000 + str(key): 1 for key in range(5)}]}, "episodes.0.xxx"),
        ("step_many", {"replies": [RIGHT], "places": [10**3000]}, "no episode"),
        ("step_many", {"replies": [RIGHT], "places": [0.5]}, "places.0"),
        ("step_many", {"replies": [RIGHT], "places": {}}, "places"),
        ("step_many", {"replies": []}, "at least 1"),
        ("step_many", {"replies": [RIGHT] * 9000}, "at most 8192"),
        ("step_many", {"replies": [RIGHT], "places": list(range(9000))}, "at most 8192"),
        ("step_many", {}, "replies"),
        ("reset_many", {"episodes": [3]}, "episodes.0"),
        ("reset_many", {"episodes": [{"index": "one"}]}, "episodes.0.index"),
        ("reset_many", {"episodes": [{}, {}], "places": [0, 0]}, "named twice"),
        ("reset_many", {"episodes": [{"task_id": "a" * 1000}]}, "200"),
        ("step_many", {"replies": [{"text": "a" * 500_000}, RIGHT]}, "400000"),
    ],
)
async def test_a_batched_message_that_makes_no_sense_does_nothing(
    server: EnvServer, client: ClientSession, kind: str, data: dict[str, Any], said: str
) -> None:
    talk = await connect(client, server.url)
    await talk.many("reset_many", episodes=[{"index": 1}, {"index": 2}])
    answer = await talk.ask(kind, **data)
    assert answer["type"] == "error"
    assert said in answer["data"]["message"]
    assert len(json.dumps(answer)) < 2000
    states = (await talk.ask("state_many"))["data"]
    assert [state["step_count"] for state in states] == [0, 0]
    answers = await talk.many("step_many", replies=[RIGHT, RIGHT])
    assert [answer["reward"] for answer in answers] == [1.0, 0.0]
    await talk.socket.close()


async def test_a_task_that_is_not_there_is_an_error_in_its_place(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    answers = await talk.many("reset_many", episodes=[{"index": 1}, {"index": 99}])
    assert answers[1]["error"] == {
        "message": "no task 99 in 'train', which has 0-19",
        "code": "VALIDATION_ERROR",
    }
    answers = await talk.many("step_many", replies=[RIGHT, RIGHT])
    assert answers[0]["reward"] == 1.0
    assert "reset first" in answers[1]["error"]["message"]
    await talk.socket.close()


async def test_a_family_without_words_of_its_engine_has_no_bare_episode(
    server: EnvServer, client: ClientSession
) -> None:
    talk = await connect(client, server.url)
    answers = await talk.many("reset_many", episodes=[{"index": 1, "bare": True}, {"index": 1}])
    assert answers[0]["error"]["code"] == "VALIDATION_ERROR"
    assert "`bare`" in answers[0]["error"]["message"]
    assert answers[1]["observation"]["admissible"] is None
    await talk.socket.close()


async def test_episodes_of_a_group_count_as_sessions(server: EnvServer, client: ClientSession) -> None:
    large, small = await connect(client, server.url), await connect(client, server.url)
    await large.many("reset_many", episodes=[{"index": 1}] * 6)
    refused = await small.ask("reset_many", episodes=[{"index": 1}] * 3)
    assert refused["data"]["code"] == "CAPACITY_REACHED"
    await small.many("reset_many", episodes=[{"index": 1}] * 2)
    await large.many("reset_many", episodes=[{"index": 1}] * 3)
    await small.many("reset_many", episodes=[{"index": 1}] * 5)
    for each in (large, small):
        await each.socket.close()


@pytest.mark.parametrize("moment", ["after", "during"])
async def test_a_client_that_resets_a_group_and_vanishes_frees_all_of_it(
    server: EnvServer, client: ClientSession, moment: str
) -> None:
    """Whoever comes next gets all sessions."""
    everything: dict[str, Any] = {"episodes": [{"index": 1}] * 8}
    for _ in range(3):
        talk = await connect(client, server.url)
        if moment == "after":
            await talk.many("reset_many", **everything)
        else:
            await talk.socket.send_json({"type": "reset_many", "data": everything})
        talk.vanish()
        other = await connect(client, server.url)
        await other.many("reset_many", **everything)
        answers = await other.many("step_many", replies=[RIGHT] * 8)
        assert [each["reward"] for each in answers] == [1.0] * 8
        await other.socket.close()
