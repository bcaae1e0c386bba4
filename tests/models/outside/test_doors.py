"""Agents from outside, at every door: what they see, whose fault it is when they stop, who gets which task."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, WSMsgType
from env_server import Talk, connect

from evalharness.agents.external import ExternalAgent, ExternalOptions
from evalharness.base.errors import InfrastructureError
from evalharness.config.outside import OutsideConfig
from evalharness.envs.base import EnvSpec
from evalharness.models.base import Environment, Player
from evalharness.models.opened import Opened, Reports
from evalharness.models.openenv.wire import MOST_BYTES
from evalharness.models.outside.hub import MOST_REQUESTS
from evalharness.models.outside.serve import prepare_outside
from evalharness.models.tries import AbortedError
from evalharness.play import loop
from evalharness.play.workers.process import RemoteEnvironment, WorkerProcess
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.records.episode import Episode
from tests.play.test_scheduler import compass

__all__ = ["compass"]

TOKEN = "a-token-of-some-length"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Run:
    """Plays Compass tasks with the loop, as a run does, for whoever comes to the doors."""

    def __init__(self, spec: EnvSpec, opened: Opened, url: str, worker: WorkerProcess) -> None:
        self.spec, self.opened, self.url, self.worker = spec, opened, url, worker
        self._slots = iter(range(8))

    def begin(self, index: int = 2, **options: Any) -> asyncio.Task[Episode]:
        return asyncio.create_task(self.play(index, **options))

    async def play(self, index: int = 2, *, valid_actions: bool = False, max_turns: int = 4) -> Episode:
        task = self.spec.suites.load_tasks("open", None, 0)[index]
        players: list[Player] = []

        def player(world: Environment) -> Player:
            players.append(self.opened.policy.player(task, 0, world))
            return players[0]

        try:
            episode = await loop.play(
                task,
                RemoteEnvironment(self.worker, next(self._slots)),
                player,
                prompt=load_prompt(self.spec),
                surface=PlayedSurface(self.spec),
                agent=ExternalAgent(ExternalOptions(name="mine", valid_actions=valid_actions)),
                max_turns=max_turns,
            )
        except BaseException:
            players[0].void()
            raise
        return players[0].finished(episode)


Open = Callable[..., Any]


@pytest.fixture
async def opened(
    compass: EnvSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Open:
    """`async with opened(agent_wait=1) as run`."""
    monkeypatch.setenv("EVALHARNESS_AGENT_TOKEN", TOKEN)
    caplog.set_level(logging.INFO, "evalharness")

    @asynccontextmanager
    async def one(**options: Any) -> AsyncIterator[Run]:
        prepared = prepare_outside("external:mine", OutsideConfig(**options))
        worker = WorkerProcess(compass, None, None)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(worker.close)
            policy = await stack.enter_async_context(prepared.open(tmp_path, Reports()))
            said = next(m for m in reversed(caplog.messages) if m.startswith("waiting for agents"))
            yield Run(compass, policy, said.split("=")[1].split()[0], worker)

    return one


@pytest.fixture
async def client() -> AsyncIterator[ClientSession]:
    async with ClientSession(headers=HEADERS) as session:
        yield session


async def post(client: ClientSession, url: str, **body: Any) -> tuple[int, dict[str, Any]]:
    async with client.post(url, json=body) as response:
        return response.status, await response.json(content_type=None)


@pytest.fixture(autouse=True)
def no_farewell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalharness.models.outside.serve._FAREWELL_S", 0.0)


class Acting:
    """One agent at one of the doors: `reset` and `act` give what it sees."""

    def __init__(self, client: ClientSession, url: str) -> None:
        self.client, self.url, self.session = client, url, ""

    async def reset(self) -> dict[str, Any]:
        status, seen = await post(self.client, f"{self.url}/reset")
        assert status == 200, seen
        self.session = seen.pop("session")
        return seen

    async def act(self, text: str) -> dict[str, Any]:
        usage = {"model": "their-model", "cost": 0.25, "prompt_tokens": 10}
        action = {"text": text, "thought": "hm", "usage": usage}
        status, seen = await post(self.client, f"{self.url}/step", session=self.session, action=action)
        assert status == 200, seen
        return seen


class ActingByWebSocket(Acting):
    async def reset(self) -> dict[str, Any]:
        self.talk = await connect(self.client, self.url)
        return await self.talk.reset()

    async def act(self, text: str) -> dict[str, Any]:
        usage = {"model": "their-model", "cost": 0.25, "prompt_tokens": 10}
        return await self.talk.step(text, thought="hm", usage=usage)


@pytest.mark.parametrize("door", [Acting, ActingByWebSocket])
async def test_an_agent_sees_observations_only_and_its_actions_are_played_and_scored(
    opened: Open, client: ClientSession, door: type[Acting]
) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = door(client, run.url)
        first = await agent.reset()
        assert first["observation"] == {
            "text": "You face north.",
            "goal": "face south",
            "instructions": (
                "Turn until you face the right way. You can:\n- turn {direction}\n- check valid actions"
            ),
            "turns_left": 4,
            "valid_actions": None,
            "metadata": {},
        }
        assert (first["reward"], first["done"]) == (None, False)
        second = await agent.act("  turn right\n")
        assert second["observation"]["text"] == "You face east."
        assert (second["observation"]["turns_left"], second["observation"]["instructions"]) == (3, None)
        empty = await agent.act(" ")
        assert empty["observation"]["text"] == "Your action was empty."
        last = await agent.act("turn right")
        assert (last["observation"]["text"], last["done"], last["reward"]) == ("You face south.", True, None)
        episode = await playing
    assert (episode.success, episode.ended_by, len(episode.turns)) == (True, "success", 3)
    assert [turn.action for turn in episode.turns] == ["turn right", None, "turn right"]
    said = episode.outside
    assert said is not None
    assert (said.stopped, said.handed_out, said.model) == (None, 1, "their-model")
    assert (said.cost, said.prompt_tokens, said.completion_tokens) == (0.75, 30, None)
    # What it says of itself is not counted as if it were measured.
    assert (episode.prompt_tokens, episode.turns[0].prompt_tokens) == (0, None)


async def test_valid_actions_are_shown_where_the_run_allows_it(opened: Open, client: ClientSession) -> None:
    async with opened() as run:
        playing = run.begin(valid_actions=True)
        agent = Acting(client, run.url)
        listed = (await agent.reset())["observation"]["valid_actions"]
        assert "turn right" in listed
        await agent.act("turn right")
        await agent.act("turn right")
        assert (await playing).success


async def _close(agent: ActingByWebSocket) -> None:
    await agent.talk.socket.close()


async def _vanish(agent: ActingByWebSocket) -> None:
    agent.talk.vanish()


async def _say_close(agent: ActingByWebSocket) -> None:
    await agent.talk.socket.send_json({"type": "close"})


async def _send_too_much(agent: ActingByWebSocket) -> None:
    await agent.talk.socket.send_str(json.dumps({"type": "step", "data": {"text": "x" * MOST_BYTES}}))


@pytest.mark.parametrize("leave", [_close, _vanish, _say_close, _send_too_much])
async def test_an_agent_that_leaves_has_failed_at_its_episode(
    opened: Open, client: ClientSession, leave: Callable[[ActingByWebSocket], Any]
) -> None:
    """Otherwise leaving would be a way to another try."""
    async with opened() as run:
        playing = run.begin()
        agent = ActingByWebSocket(client, run.url)
        await agent.reset()
        await agent.act("turn right")
        await leave(agent)
        episode = await playing
    assert (episode.ended_by, episode.success, len(episode.turns)) == ("policy_stopped", False, 1)
    assert episode.outside is not None
    assert episode.outside.stopped == "left"


async def test_a_reset_in_an_episode_leaves_it_and_gives_the_next_one(
    opened: Open, client: ClientSession
) -> None:
    async with opened() as run:
        first, second = run.begin(2), run.begin(1)
        agent = ActingByWebSocket(client, run.url)
        goals = [(await agent.reset())["observation"]["goal"]]
        goals.append((await agent.talk.reset())["observation"]["goal"])
        assert sorted(goals) == ["face east", "face south"]
        left = (first, second) if goals[0] == "face south" else (second, first)
        assert (await left[0]).outside.stopped == "left"  # type: ignore[union-attr]
        await agent.talk.socket.close()
        await left[1]


async def test_an_agent_that_is_silent_loses_its_episode_and_hears_why(
    opened: Open, client: ClientSession
) -> None:
    async with opened(turn_time_limit=0.2) as run:
        playing = run.begin()
        agent = ActingByWebSocket(client, run.url)
        await agent.reset()
        episode = await playing
        late = await agent.talk.ask("step", text="turn right")
    assert (episode.ended_by, episode.outside.stopped) == ("policy_stopped", "timeout")  # type: ignore[union-attr]
    assert late["data"]["code"] == "EXECUTION_ERROR"
    assert "no action came in time" in late["data"]["message"]


async def test_nonsense_is_answered_with_errors_and_the_episode_goes_on(
    opened: Open, client: ClientSession
) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = ActingByWebSocket(client, run.url)
        await agent.reset()
        socket = agent.talk.socket
        for sent, code in (
            ("{", "INVALID_JSON"),
            ("[" * 100_000, "INVALID_JSON"),
            ('{"type": "valid_actions"}', "UNKNOWN_TYPE"),
            ('{"type": "step", "data": {"text": 3}}', "VALIDATION_ERROR"),
            ('{"type": "step", "data": {"text": "x", "usage": {"cost": -1}}}', "VALIDATION_ERROR"),
            (json.dumps({"type": "step", "data": {"text": "x" * 20_001}}), "VALIDATION_ERROR"),
        ):
            await socket.send_str(sent)
            assert (await socket.receive_json())["data"]["code"] == code
        await socket.send_bytes(b"\x00")
        assert (await socket.receive_json())["data"]["code"] == "INVALID_JSON"
        await agent.act("turn right")
        await agent.act("turn right")
        assert (await playing).success


async def test_one_that_asks_10000_times_without_acting_is_cut_off(
    opened: Open, client: ClientSession
) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = ActingByWebSocket(client, run.url)
        await agent.reset()
        socket, answered = agent.talk.socket, 0

        async def ask() -> None:
            for _ in range(10_000):
                await socket.send_str('{"type": "valid_actions"}')

        asking = asyncio.create_task(ask())
        while (await socket.receive()).type is WSMsgType.TEXT:
            answered += 1
        episode = await playing
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert answered < MOST_REQUESTS
    assert episode.outside.stopped == "too_many_requests"  # type: ignore[union-attr]


async def test_over_http_a_session_is_needed_and_a_megabyte_is_refused(
    opened: Open, client: ClientSession
) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = Acting(client, run.url)
        await agent.reset()
        status, answer = await post(client, f"{run.url}/step", session="another", action="turn right")
        assert (status, answer["code"]) == (409, "SESSION_ERROR")
        async with client.post(f"{run.url}/step", data=b"x" * (MOST_BYTES + 1)) as response:
            assert response.status == 413
        async with client.get(f"{run.url}/state", params={"session": agent.session}) as response:
            assert (await response.json()) == {"episode_id": agent.session, "step_count": 0}
        status, _ = await post(client, f"{run.url}/close", session=agent.session)
        assert status == 200
        assert (await playing).outside.stopped == "left"  # type: ignore[union-attr]


async def test_no_episode_is_given_to_two_agents(opened: Open, client: ClientSession, tmp_path: Path) -> None:
    async with opened() as run:
        playing = [run.begin(index) for index in range(4)]
        agents = [Acting(client, run.url) for _ in playing]
        goals = [seen["observation"]["goal"] for seen in await asyncio.gather(*(a.reset() for a in agents))]
        assert sorted(goals) == ["face east", "face north", "face south", "face west"]
        for agent in agents:
            await post(client, f"{run.url}/close", session=agent.session)
        await asyncio.gather(*playing)
    lines = [json.loads(line) for line in (tmp_path / "handouts.jsonl").read_text().splitlines()]
    assert sorted(line["task_id"] for line in lines) == [f"compass/open/{i:03d}" for i in range(4)]
    assert {line["times"] for line in lines} == {1}


async def test_what_fails_on_our_side_is_void_and_the_next_hand_out_is_recorded(
    opened: Open, client: ClientSession
) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = Acting(client, run.url)
        await agent.reset()
        run.worker.kill()
        status, answer = await post(client, f"{run.url}/step", session=agent.session, action="turn right")
        assert (status, answer["code"]) == (500, "EXECUTION_ERROR")
        assert "void" in answer["detail"]
        with pytest.raises(InfrastructureError):
            await playing
        run.worker = WorkerProcess(run.spec, None, None)
        again = run.begin()
        await agent.reset()
        await agent.act("turn right")
        await agent.act("turn right")
        episode = await again
        await run.worker.close()
    assert episode.success
    assert episode.outside.handed_out == 2  # type: ignore[union-attr]


async def test_an_agent_that_left_while_it_waited_gets_no_episode(
    opened: Open, client: ClientSession
) -> None:
    async with opened() as run:
        early = Talk((await connect(client, run.url)).socket)
        await early.socket.send_json({"type": "reset"})
        early.vanish()
        async with client.get(f"{run.url}/health") as response:  # the server has read on
            assert response.status == 200
        playing = run.begin()
        agent = Acting(client, run.url)
        await agent.reset()
        await agent.act("turn right")
        await agent.act("turn right")
        assert (await playing).success


async def test_strangers_and_web_pages_stay_outside(opened: Open) -> None:
    async with opened() as run, ClientSession() as stranger:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer nearly"}, 401),
            ({**HEADERS, "Origin": "http://a.page"}, 403),
        ):
            for path in ("/reset", "/step"):
                async with stranger.post(run.url + path, json={}, headers=headers) as response:
                    assert response.status == status


async def test_a_run_that_no_agent_comes_to_ends(opened: Open) -> None:
    async with opened(agent_wait=0.2) as run:
        with pytest.raises(AbortedError, match=r"no agent asked for an episode for 0\.2 s \(agent_wait\)"):
            await run.play()


async def test_at_the_end_of_the_run_agents_hear_that_it_is_over(opened: Open, client: ClientSession) -> None:
    async with opened() as run:
        agent = await connect(client, run.url)
        waiting = asyncio.create_task(agent.ask("reset"))
        await agent.socket.ping()
        while not run.opened.policy.hub.is_over:  # type: ignore[attr-defined]
            await run.opened.policy.hub.close()  # type: ignore[attr-defined]
        assert (await waiting)["data"]["code"] == "RUN_OVER"
