"""Agents from outside at the door: what they see, whose fault it is when they stop, who gets which task."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from evalharness.agents.program import Program
from evalharness.base.errors import InfrastructureError
from evalharness.door.door import Door, is_one_of, listen
from evalharness.envs.base import EnvSpec
from evalharness.models.base import Environment, Player
from evalharness.play import loop
from evalharness.play.workers.process import RemoteEnvironment, WorkerProcess
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.records.episode import Episode
from evalharness.rl.outside.agent import ExternalAgent, ExternalOptions
from evalharness.rl.outside.application import application
from evalharness.rl.outside.process import TOKEN, URL
from evalharness.rl.outside.serve import HandOuts, OutsidePolicy
from evalharness.rl.outside.session import MOST_REQUESTS, Sessions
from evalharness.rl.wire import MOST_BYTES
from tests.play.test_scheduler import compass

__all__ = ["compass"]

# A process that does nothing but write down how it can be reached: the test acts in its place.
STAND_IN = f"""
import os, pathlib, sys, time
place = pathlib.Path(sys.argv[1]) / str(os.getpid())
place.with_suffix(".new").write_text(os.environ[{URL!r}] + " " + os.environ[{TOKEN!r}])
place.with_suffix(".new").rename(place.with_suffix(".agent"))
time.sleep(600)
"""


class Run:
    """Plays Compass tasks with the loop, as a run does, and gives each process's address to `agent`."""

    def __init__(self, spec: EnvSpec, policy: OutsidePolicy, worker: WorkerProcess, folder: Path) -> None:
        self.spec, self.policy, self.worker, self.folder = spec, policy, worker, folder
        self._slots = iter(range(8))

    def begin(self, index: int = 2, **options: Any) -> asyncio.Task[Episode]:
        return asyncio.create_task(self.play(index, **options))

    async def play(self, index: int = 2, *, valid_actions: bool = False, max_turns: int = 4) -> Episode:
        task = self.spec.suites.load_tasks("open", None, 0)[index]
        players: list[Player] = []

        def player(world: Environment) -> Player:
            players.append(self.policy.player(task, 0, world))
            return players[0]

        try:
            episode = await loop.play_episode(
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
        return players[0].finish(episode)

    async def agent(self) -> Acting:
        """In the place of the process that was started next."""
        while not (places := sorted(self.folder.glob("*.agent"))):
            await asyncio.sleep(0.02)
        url, token = places[0].read_text().split()
        places[0].unlink()
        return Acting(url, token)


Open = Callable[..., Any]


@pytest.fixture
def opened(compass: EnvSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """`async with opened(turn_s=1) as run`."""
    monkeypatch.setattr("evalharness.rl.outside.process._OWN_END_S", 0.0)
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)

    @asynccontextmanager
    async def one(turn_s: float = 60.0) -> AsyncIterator[Run]:
        handouts, worker = HandOuts(tmp_path), WorkerProcess(compass, None, None)
        sessions = Sessions(handouts.note)
        door = Door(lambda given: is_one_of(given, sessions.by_token))
        async with listen(application(sessions, door), "127.0.0.1", 0, flags="address") as url:
            command = (sys.executable, str(script), str(tmp_path))
            policy = OutsidePolicy(command, tmp_path / "agent.log", url, sessions, Program(), 60.0, turn_s)
            run = Run(compass, policy, worker, tmp_path)
            try:
                yield run
            finally:
                await policy.close()
                await run.worker.close()
                handouts.close()

    return one


class Acting:
    """One agent: `reset` and `act` give what it sees."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.headers = url, {"Authorization": f"Bearer {token}"}

    async def post(self, path: str, raw: bytes | None = None, **body: Any) -> tuple[int, dict[str, Any]]:
        data = json.dumps(body).encode() if raw is None else raw
        async with (
            ClientSession(headers=self.headers) as client,
            client.post(self.url + path, data=data) as response,
        ):
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else {}

    async def reset(self) -> dict[str, Any]:
        status, seen = await self.post("/reset")
        assert status == 200, seen
        return seen

    async def act(self, text: str) -> dict[str, Any]:
        usage = {"model": "their-model", "cost": 0.25, "prompt_tokens": 10}
        status, seen = await self.post("/step", action={"text": text, "thought": "hm", "usage": usage})
        assert status == 200, seen
        return seen


async def test_an_agent_sees_observations_only_and_its_actions_are_played_and_scored(opened: Open) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = await run.agent()
        first = await agent.reset()
        assert first == {
            "observation": {
                "text": "You face north.",
                "goal": "face south",
                "instructions": (
                    "Turn until you face the right way. You can:\n- turn {direction}\n- check valid actions"
                ),
                "turns_left": 4,
                "valid_actions": None,
            },
            "done": False,
        }
        second = await agent.act("  turn right\n")
        assert second["observation"]["text"] == "You face east."
        assert (second["observation"]["turns_left"], second["observation"]["instructions"]) == (3, None)
        empty = await agent.act(" ")
        assert empty["observation"]["text"] == "Your action was empty."
        last = await agent.act("turn right")
        assert (last["observation"]["text"], last["done"]) == ("You face south.", True)
        episode = await playing
    assert (episode.success, episode.ended_by, len(episode.turns)) == (True, "success", 3)
    assert [turn.action for turn in episode.turns] == ["turn right", None, "turn right"]
    outside = episode.outside
    assert outside is not None
    assert (outside.stopped, outside.handed_out, outside.model) == (None, 1, "their-model")
    assert (outside.cost, outside.prompt_tokens, outside.completion_tokens) == (0.75, 30, None)
    # What it says of itself is not counted as if it were measured.
    assert (episode.prompt_tokens, episode.turns[0].prompt_tokens) == (0, None)


async def test_valid_actions_are_shown_where_the_run_allows_it(opened: Open) -> None:
    async with opened() as run:
        playing = run.begin(valid_actions=True)
        agent = await run.agent()
        assert "turn right" in (await agent.reset())["observation"]["valid_actions"]
        await agent.act("turn right")
        await agent.act("turn right")
        assert (await playing).success


async def test_an_agent_that_leaves_has_failed_at_its_episode(opened: Open) -> None:
    """Leaving never buys a retry."""
    async with opened() as run:
        playing = run.begin()
        agent = await run.agent()
        await agent.reset()
        await agent.act("turn right")
        assert (await agent.post("/close"))[0] == 200
        episode = await playing
    assert (episode.ended_by, episode.success, len(episode.turns)) == ("policy_stopped", False, 1)
    assert episode.outside is not None
    assert episode.outside.stopped == "left"


async def test_an_agent_that_is_silent_loses_its_episode_and_hears_why(opened: Open) -> None:
    async with opened(turn_s=0.2) as run:
        playing = run.begin()
        agent = await run.agent()
        await agent.reset()
        await playing
        status, answer = await agent.post("/step", action="turn right")
        episode = playing.result()
    assert (episode.ended_by, episode.outside.stopped) == ("policy_stopped", "timeout")  # type: ignore[union-attr]
    assert (status, answer["code"]) == (409, "EXECUTION_ERROR")
    assert "in time" in answer["detail"]


async def test_nonsense_is_answered_with_errors_and_the_episode_goes_on(opened: Open) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = await run.agent()
        await agent.reset()
        for sent, code in (
            (b"{", "INVALID_JSON"),
            (b"[" * 100_000, "INVALID_JSON"),
            (b'{"action": 3}', "VALIDATION_ERROR"),
            (b'{"action": "x", "session": "y"}', "VALIDATION_ERROR"),
            (b'{"action": {"text": "x", "usage": {"cost": -1}}}', "VALIDATION_ERROR"),
            (json.dumps({"action": {"text": "x" * 20_001}}).encode(), "VALIDATION_ERROR"),
        ):
            assert (await agent.post("/step", sent))[1]["code"] == code
        assert (await agent.post("/step", b"x" * (MOST_BYTES + 1)))[0] == 413
        assert (await agent.post("/reset"))[1]["code"] == "SESSION_ERROR"
        await agent.act("turn right")
        await agent.act("turn right")
        assert (await playing).success


async def test_one_that_asks_again_and_again_without_acting_is_cut_off(opened: Open) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = await run.agent()
        await agent.reset()
        for _ in range(MOST_REQUESTS):
            await agent.post("/reset")
        episode = await playing
    assert episode.outside.stopped == "too_many_requests"  # type: ignore[union-attr]


async def test_no_episode_is_given_to_two_agents(opened: Open, tmp_path: Path) -> None:
    async with opened() as run:
        playing = [run.begin(index) for index in range(4)]
        agents = [await run.agent() for _ in playing]
        goals = [seen["observation"]["goal"] for seen in await asyncio.gather(*(a.reset() for a in agents))]
        assert sorted(goals) == ["face east", "face north", "face south", "face west"]
        for agent in agents:
            await agent.post("/close")
        await asyncio.gather(*playing)
    lines = [json.loads(line) for line in (tmp_path / "handouts.jsonl").read_text().splitlines()]
    assert sorted(line["task_id"] for line in lines) == [f"compass/open/{i:03d}" for i in range(4)]
    assert {line["times"] for line in lines} == {1}


async def test_what_fails_on_our_side_is_void_and_the_next_hand_out_is_recorded(opened: Open) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = await run.agent()
        await agent.reset()
        run.worker.kill()
        status, answer = await agent.post("/step", action="turn right")
        assert (status, answer["code"]) == (500, "EXECUTION_ERROR")
        assert "void" in answer["detail"]
        with pytest.raises(InfrastructureError):
            await playing
        run.worker = WorkerProcess(run.spec, None, None)
        again = run.begin()
        agent = await run.agent()
        await agent.reset()
        await agent.act("turn right")
        await agent.act("turn right")
        episode = await again
    assert episode.success
    assert episode.outside.handed_out == 2  # type: ignore[union-attr]


async def test_strangers_and_web_pages_stay_outside(opened: Open) -> None:
    async with opened() as run:
        playing = run.begin()
        agent = await run.agent()
        own = agent.headers
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer nearly"}, 401),
            ({**own, "Origin": "http://a.page"}, 403),
        ):
            agent.headers = headers
            for path in ("/reset", "/step"):
                assert (await agent.post(path))[0] == status
        agent.headers = own
        await agent.reset()
        await agent.post("/close")
        await playing
