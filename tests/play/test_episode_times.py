"""The simulator's own time and the wait for its process are told apart, and shares of the time add up."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness, surroundings
from made_runs import make_task

from evalharness.base.errors import InfrastructureError
from evalharness.base.timing import CallTimes, FamilyTimes, Latencies
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Player, Reply, RequestForm
from evalharness.models.opened import Opened
from evalharness.models.scripted import OraclePolicy
from evalharness.models.slots import Slots
from evalharness.play.efficiency import report
from evalharness.play.episodes import SlotPlayer, Work
from evalharness.play.loop import play_episode
from evalharness.play.progress import Progress
from evalharness.play.session import RunSession
from evalharness.play.workers.process import RemoteEnvironment, WorkerProcess
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message, load_prompt
from evalharness.records.store import RunStore
from tests.play.test_efficiency import measured
from tests.play.test_scheduler import compass, jobs_of

__all__ = ["compass"]


class Busy:
    """A world whose process answers after five seconds, half a second of which is this episode's own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.last_call = CallTimes()

    def clock(self) -> float:
        return self.now

    def _pass(self) -> None:
        self.now += 5.0
        self.last_call = CallTimes(waited_s=4.5, took_s=0.5)

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        self._pass()
        return "goal", "start", {"progress": 0.0, "success": False, "solved": False}

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        self._pass()
        info = {"progress": 0.0, "success": False, "solved": False, "valid": True, "subgoals_completed": ()}
        return "a room", False, info


class Speaker(Player):
    """Says one action, then words without any."""

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        return Reply("Thought: go\nAction: look" if turn == 1 else "hello")


async def test_time_in_the_simulator_is_its_own_and_the_wait_for_its_process_stands_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec, world = specs()["alfworld"], Busy()
    prompt = load_prompt(spec)
    monkeypatch.setattr("evalharness.play.loop.time.perf_counter", world.clock)
    episode = await play_episode(
        make_task("alfworld", 0), world, lambda _: Speaker(),  # type: ignore[arg-type]
        prompt=prompt, surface=PlayedSurface(spec), max_turns=2,
    )  # fmt: skip
    assert [(turn.environment_s, turn.worker_s) for turn in episode.turns] == [(0.5, 4.5), (0.0, 0.0)]
    assert (episode.environment_s, episode.worker_s) == (1.0, 9.0)
    assert episode.wall_s == 10.0


async def test_a_call_never_waited_longer_than_it_took(compass: EnvSpec) -> None:
    """A worker that ends, while a call waits, a step that began long before it was made."""
    worker = WorkerProcess(compass, None, None)
    [one, other] = [job.task for job in jobs_of("compass", [1.0] * 2)]
    try:
        await worker.call(0, "reset", 10.0, task=one.to_json())
        asked = time.perf_counter()
        waiting = asyncio.create_task(RemoteEnvironment(worker, 1).reset(other))
        await asyncio.sleep(0)
        worker._took_s += 1000.0
        await waiting
        elapsed = time.perf_counter() - asked
    finally:
        await worker.close()
    assert 0 < worker.last_call.took_s + worker.last_call.waited_s <= elapsed


@pytest.mark.parametrize("excess", [-50.0, 0.0, 103.0])
def test_shares_of_the_time_add_up_to_one(excess: float) -> None:
    """Also where the parts are longer than the whole, as rounding and clocks of two processes may have it."""
    times = {"sciworld": FamilyTimes(90, 2700, 3500.0, 3150.0 + excess, 100.0, 140.0, 100.0, 10.0)}
    told = report(measured(times=times))
    for shares in (told.time, (told.families or {})["sciworld"]):
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-12)
        assert all(share >= 0 for share in shares.values())


async def test_what_a_failed_request_waited_for_is_counted_where_it_was_spent() -> None:
    class Failing(Player):
        async def reply(
            self, messages: list[Message], *, turn: int, form: RequestForm | None = None
        ) -> Reply:
            await asyncio.sleep(0)
            raise InfrastructureError("no")

    times = FamilyTimes()
    player: Player = SlotPlayer(Failing(), Slots(1), times, Latencies())
    with pytest.raises(InfrastructureError):
        await player.reply([], turn=1)
    assert times.model_s > 0
    assert times.slot_s >= 0


async def test_slots_were_not_to_be_had_while_the_model_was_loading(tmp_path: Path) -> None:
    now, config = 0.0, RunConfig.of(model="oracle")
    work = Work(config.policy, config.agent, config.limits, config.execution, "", {}, {}, {}, None, [])
    with RunStore(tmp_path / "run") as store:
        start = RunSession(work, store, Progress({}))
        start.slots = Slots(8, clock=lambda: now)
        now = 600.0
        _, took = await start._play_jobs(Opened(OraclePolicy()))
    assert took.allowed_slot_s == 0.0


@pytest.mark.slow
async def test_a_try_that_failed_is_part_of_the_whole(tmp_path: Path) -> None:
    """What it waited for was always in the parts; without its own time they came to more than the whole."""

    def answer(request: dict[str, Any]) -> str:
        said = sum(message["role"] == "assistant" for message in request["messages"])
        return "Thought: t\nAction: " + ("turn up" if said < 8 else "fault exit")

    folder = tmp_path / "run"
    async with ChatServer(answer=answer, latency=0.02).running() as server:
        done = await asyncio.to_thread(
            evalharness, surroundings(tmp_path), "run", "--suite", "open", "--tasks", "compass:0", "--model",
            server.url, "--model-name", "toy", "--max-turns", 10, "-o", folder,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    performance = json.loads((folder / "summary.json").read_text())["performance"]
    assert sum(performance["time"].values()) == pytest.approx(1.0)
    lines = [json.loads(line) for line in (folder / "episodes.jsonl").read_text().splitlines()]
    errors = (folder / "errors.jsonl").read_text().splitlines()
    assert (len(lines), len(errors)) == (1, 1)
    assert performance["episode_s"] > 1.5 * sum(line["wall_s"] for line in lines)
