"""One folder, one writer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from chat_server import ChatServer

from .runs import answer, assert_equal_runs, begin, options, play


async def test_a_second_harness_on_the_same_folder_is_refused_and_disturbs_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(answer=answer).running() as server:
        arguments = options(server, "--samples", 3, "--concurrency", 4)
        await play(environment, tmp_path / "whole", *arguments)
        server.latency = 0.02
        first = await begin(environment, tmp_path / "run", *arguments)
        await server.after(10)
        server.gate = asyncio.Event()
        said = await play(environment, tmp_path / "run", *arguments, status=2)
        server.gate.set()
        assert f"evalharness is writing to {tmp_path / 'run'}" in said
        _, stderr = await first.communicate()
    assert first.returncode == 0, stderr.decode()
    assert_equal_runs(tmp_path / "whole", tmp_path / "run")


async def test_of_four_that_start_together_one_plays(environment: dict[str, str], tmp_path: Path) -> None:
    async with ChatServer(answer=answer).running() as server:
        arguments = options(server, "--samples", 2, "--concurrency", 4)
        await play(environment, tmp_path / "whole", *arguments)
        server.gate = asyncio.Event()
        started = [await begin(environment, tmp_path / "new" / "run", *arguments) for _ in range(4)]
        ending = [asyncio.create_task(process.communicate()) for process in started]
        for first in asyncio.as_completed(ending):
            await first
            if sum(task.done() for task in ending) == 3:
                server.gate.set()
        said = [await task for task in ending]
    assert sorted(process.returncode or 0 for process in started) == [0, 2, 2, 2]
    refused = [stderr for process, (_, stderr) in zip(started, said, strict=True) if process.returncode]
    assert all(b"another evalharness is writing" in stderr for stderr in refused), refused
    assert_equal_runs(tmp_path / "whole", tmp_path / "new" / "run")
