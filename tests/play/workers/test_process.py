"""One worker process with real environments: what it answers, how it fails, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, Task
from evalharness.envs.pddl import SPEC as PDDL
from evalharness.play.workers.process import (
    RemoteEnvironment,
    WorkerError,
    WorkerGoneError,
    WorkerProcess,
    WorkerStartError,
)
from tests.play.test_scheduler import compass

__all__ = ["compass"]
pytestmark = pytest.mark.slow


def task(index: int, wanted: str = "south") -> Task:
    return Task(f"compass/open/{index:03d}", "compass", "open", index, "g", "easy", "k", subgoals=(wanted,))


async def test_two_episodes_in_one_worker_do_not_mix(compass: EnvSpec) -> None:
    worker = WorkerProcess(compass, None, None)
    first, second = RemoteEnvironment(worker, 0), RemoteEnvironment(worker, 1)
    try:
        await first.reset(task(0, "south"))
        _, text, info = await second.reset(task(1, "east"))
        assert (text, info["progress"]) == ("You face north.", 0.0)
        turned = await asyncio.gather(first.step("turn left"), second.step("turn right"))
        assert [(text, done) for text, done, _ in turned] == [
            ("You face west.", False),
            ("You face east.", True),
        ]
        assert "turn left" in await first.valid_actions()
        assert await first.oracle() == ["turn left"], "from where it faces now"
        assert worker.pid is not None
        assert psutil.pid_exists(worker.pid)
    finally:
        await worker.close()
    assert not psutil.pid_exists(worker.pid)


async def test_times_are_those_of_an_episodes_own_calls(compass: EnvSpec) -> None:
    """The start counts for the call that waited for it, and no time is counted twice."""
    worker = WorkerProcess(compass, None, None)
    environment = RemoteEnvironment(worker, 0)
    try:
        await environment.reset(task(0))
        assert environment.last_call.start_s > 0
        started = environment.times.start_s
        await environment.step("turn left")
        assert (environment.last_call.start_s, environment.times.start_s) == (0, started)
        assert environment.last_call.took_s > 0
    finally:
        await worker.close()


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("fault always exit", "died during 'step': exit status 7"),
        ("fault always kill", "died during 'step': exit status -9"),
        ("fault always raise", r"Compass raised RuntimeError in 'step': the needle fell off\n.*adapter\.py"),
        ("fault always garbage", "the Compass worker died during 'step': Expecting value"),
    ],
)
async def test_a_worker_that_fails_says_how_and_is_broken_for_good(
    compass: EnvSpec, action: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a worker's files, 1 is standard error by then; the next one is the protocol's.
    monkeypatch.setenv("COMPASS_STDOUT", "3")
    worker = WorkerProcess(compass, None, None)
    environment, other = RemoteEnvironment(worker, 0), RemoteEnvironment(worker, 1)
    try:
        await environment.reset(task(0))
        await other.reset(task(1))
        with pytest.raises(WorkerError, match=f"(?s){said}"):
            await environment.step(action)
        assert worker.broken
        with pytest.raises(WorkerError, match="gone"):
            await other.step("turn left")
    finally:
        await worker.close()


async def test_a_worker_that_dies_between_two_calls_is_told_of_once(
    compass: EnvSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody's call ended it; were nobody told, a process that is killed again and again would be silent."""
    worker = WorkerProcess(compass, None, tmp_path / "log")
    environment, other = RemoteEnvironment(worker, 0), RemoteEnvironment(worker, 1)
    try:
        await environment.reset(task(0))
        await other.reset(task(1))
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)
        while not worker.broken:
            await asyncio.sleep(0.01)
        with pytest.raises(WorkerError, match="exit status -9") as first:
            await other.step("turn left")
        assert not isinstance(first.value, WorkerGoneError)
        with pytest.raises(WorkerGoneError, match="gone"):
            await environment.step("turn left")
    finally:
        await worker.close()
    assert worker.lost is not None
    assert worker.lost.endswith("exit status -9")
    assert f"the Compass worker {worker.lost}" in caplog.text
    assert f"the Compass worker {worker.lost}" in (tmp_path / "log").read_text()


@pytest.mark.smoke
async def test_a_worker_that_does_not_answer_is_ended_with_all_that_wait_for_it(compass: EnvSpec) -> None:
    worker = WorkerProcess(replace(compass, worker=replace(compass.worker, step_timeout=1.0)), None, None)
    environment, other = RemoteEnvironment(worker, 0), RemoteEnvironment(worker, 1)
    try:
        await environment.reset(task(0))
        await other.reset(task(1))
        ended = await asyncio.gather(
            environment.step("fault always hang"), other.step("turn left"), return_exceptions=True
        )
        assert [str(error) for error in ended] == [
            "the Compass worker did not answer 'step' within 1 s",
            "the Compass worker is gone",
        ]
        assert [type(error) for error in ended] == [WorkerError, WorkerGoneError]
    finally:
        await worker.close()
    assert worker.pid is not None
    assert not psutil.pid_exists(worker.pid)


async def test_an_error_that_a_person_can_fix_leaves_the_worker_as_it_is() -> None:
    worker = WorkerProcess(PDDL, None, None)
    environment = RemoteEnvironment(worker, 0)
    unknown = replace(PDDL.suites.load_tasks("open", None, 0)[0], kind="chess")
    try:
        with pytest.raises(UserError, match="'chess'"):
            await environment.reset(unknown)
        assert not worker.broken
        assert (await environment.reset(replace(unknown, kind="gripper")))[0]
    finally:
        await worker.close()


async def test_a_call_that_nobody_waits_for_any_more_ends_the_worker(compass: EnvSpec) -> None:
    worker = WorkerProcess(compass, None, None)
    environment = RemoteEnvironment(worker, 0)
    await environment.reset(task(0))
    hanging = asyncio.create_task(environment.step("fault always hang"))
    await asyncio.sleep(0)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert worker.broken
    await worker.close()
    assert worker.pid is not None
    assert not psutil.pid_exists(worker.pid)


async def test_what_does_not_start_gives_the_last_lines_of_its_log(compass: EnvSpec, tmp_path: Path) -> None:
    """The log of the worker before is not shown as its own."""
    log = tmp_path / "workers.log"
    log.write_text("of another worker\n")
    worker = WorkerProcess(replace(compass, family="nowhere"), None, log)
    with pytest.raises(WorkerStartError) as error:
        await worker.call(0, "warm", 60)
    await worker.close()
    assert "exit status 1" in str(error.value)
    assert "KeyError: 'nowhere'" in str(error.value)
    assert "of another worker" not in str(error.value)
    assert not worker.answered


async def test_what_a_simulator_prints_is_no_answer(compass: EnvSpec, tmp_path: Path) -> None:
    """Standard output goes to the log."""
    log = tmp_path / "workers.log"
    worker = WorkerProcess(compass, None, log)
    environment = RemoteEnvironment(worker, 0)
    try:
        await environment.reset(task(0))
        assert (await environment.step("fault always garbage"))[0] == "You cannot do that."
    finally:
        await worker.close()
    assert "noise on standard output" in log.read_text()


def children_of(pid: int) -> list[Any]:
    return psutil.Process(pid).children(recursive=True)


async def test_usage_is_of_the_process_while_there_is_one(compass: EnvSpec) -> None:
    worker = WorkerProcess(compass, None, None)
    assert worker.usage().rss_bytes is None
    await worker.call(0, "warm", 60)
    assert (worker.usage().rss_bytes or 0) > 2**20
    assert worker.pid in [child.pid for child in children_of(os.getpid())]
    await worker.close()
    assert worker.usage().cpu_s is None
