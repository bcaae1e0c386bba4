"""Workers and simulators are killed or stopped from outside while episodes are being played in them."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from pathlib import Path

import pytest
from chat_server import ChatServer
from command_line import assert_same_results, evalharness, finished, start

from .runs import answer, assert_equal_runs, begin, errors, options, play, processes


@pytest.mark.parametrize(("number", "times"), [(signal.SIGKILL, 10), (signal.SIGSTOP, 3)])
async def test_a_worker_that_dies_or_hangs_is_replaced_and_its_episodes_start_over(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals, times: int
) -> None:
    rng = random.Random(7)
    async with ChatServer(answer=answer, latency=0.01).running() as server:
        arguments = options(server, "--samples", 5, "--concurrency", 4, "--workers", "compass=1")
        await play(environment, tmp_path / "whole", *arguments)
        process = await begin(environment, tmp_path / "broken", *arguments, "--tries", 30)
        ended = asyncio.create_task(process.communicate())
        for _ in range(times):
            # More requests than episodes in flight: the worker that is there now has answered.
            await asyncio.wait(
                {ended, asyncio.create_task(server.after(rng.randint(8, 25)))}, return_when="FIRST_COMPLETED"
            )
            assert not ended.done()
            processes(process.pid, "evalharness.play.workers.child")[-1].send_signal(number)
        stdout, stderr = await ended
    assert process.returncode == 0, stderr.decode()
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    failures = errors(tmp_path / "broken")
    assert {failure["kind"] for failure in failures} == {"WorkerError"}
    # A kill can hit the second worker, in which an action that has just failed is repeated: two kills, one failure.
    assert len(failures) >= times / 2
    summary = json.loads((tmp_path / "broken" / "summary.json").read_text())
    assert summary["performance"]["lost_workers"] == times
    assert f"{times} environment workers" in stdout.decode()
    assert not any(failure["final"] for failure in failures)


@pytest.mark.data
async def test_a_killed_java_process_is_replaced_and_its_episodes_start_over(
    environment: dict[str, str], tmp_path: Path, published_data: Path
) -> None:
    """ScienceWorld's simulator is a Java process under the worker."""
    arguments = (
        "run", "--suite", "agentboard", "--data", published_data, "--tasks", "sciworld:0-2", "--model", "random",
        "--samples", 2, "--max-turns", 12, "--workers", "sciworld=1", "--concurrency", 2, "-o",
    )  # fmt: skip
    whole = await asyncio.to_thread(evalharness, environment, *arguments, tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    process = await start(environment, *arguments, tmp_path / "broken", "--tries", 10)
    ended = asyncio.create_task(process.communicate())
    for enough in (1, 3):
        while finished(tmp_path / "broken") < enough:
            await asyncio.sleep(0.02)
            assert not ended.done(), (await ended)[1]
        [java] = processes(process.pid, "java")
        java.kill()
    _, stderr = await ended
    assert process.returncode == 0, stderr.decode()
    assert_same_results(tmp_path / "whole", tmp_path / "broken")
    failures = errors(tmp_path / "broken")
    assert failures
    assert {failure["kind"] for failure in failures} == {"WorkerError"}
