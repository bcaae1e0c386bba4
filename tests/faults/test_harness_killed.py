"""The harness is killed again and again; the same command continues."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import psutil
import pytest
from chat_server import ChatServer

from evalharness.records.store import EPISODES, read_episodes

from .runs import answer, asked, assert_equal_runs, begin, options, play

KILLS = 8
AT_START, AT_TABLES = 2, 1


def _tables_begun(folder: Path) -> bool:
    return any(folder.glob(".*.parquet.*.tmp"))


async def _appears(folder: Path) -> None:
    """Until the tables are being written."""
    while not _tables_begun(folder):
        await asyncio.sleep(0.001)


async def _starting(server: ChatServer, seconds: float) -> None:
    """So long, or until the first requests are made: a quick machine is to have something left for every kill."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(server.after(5), seconds)


@pytest.mark.smoke
@pytest.mark.slow(40)
async def test_eight_kills_at_random_points_leave_the_run_as_if_nothing_had_been(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """SIGKILL in the midst of 600 episodes, while starting, and while the tables are written. Every process of the
    harness goes with it, and no request is made that the undisturbed run did not make."""
    rng = random.Random(20261122)
    moments = ["start"] * AT_START + ["requests"] * (KILLS - AT_START - AT_TABLES)
    rng.shuffle(moments)
    moments += ["tables"] * AT_TABLES
    async with ChatServer(answer=answer, latency=0.005).running() as server:
        arguments = options(server, "--samples", 30, "--concurrency", 4)
        await play(environment, tmp_path / "whole", *arguments)
        undisturbed = asked(server)
        cut = tmp_path / "cut"
        for number, moment in enumerate(moments):
            process = await begin(environment, cut, *arguments)
            ended = asyncio.create_task(process.communicate())
            match moment:
                case "start":
                    wait = asyncio.create_task(_starting(server, rng.uniform(0.0, 2.0)))
                case "requests":
                    wait = asyncio.create_task(server.after(rng.randint(1, 30)))
                case _:
                    wait = asyncio.create_task(_appears(cut))
            await asyncio.wait({ended, wait}, return_when=asyncio.FIRST_COMPLETED)
            assert not ended.done(), f"kill {number} of {KILLS} came too late"
            family = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            await ended
            assert not psutil.wait_procs(family, timeout=30)[1]
        before = (cut / EPISODES).read_bytes()
        await play(environment, cut, *arguments)
        assert (cut / EPISODES).read_bytes().startswith(before)
        assert asked(server) == undisturbed
    assert len(list(read_episodes(cut))) == 600
    assert_equal_runs(tmp_path / "whole", cut)
    assert not [path.name for path in cut.iterdir() if path.name.endswith(".tmp")]
