"""A run whose vLLM the command itself has started."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from command_line import Started, finished, start

from evalharness.records.store import read_episodes

from .processes import serving


@dataclass(frozen=True)
class ServedRun:
    """Going on, with three episodes finished at least since it was started."""

    name: str
    """Of the served model; no other process has it."""
    folder: Path
    options: tuple[object, ...]
    """Of the command, to give it once more."""
    process: Started
    ended: asyncio.Task[tuple[bytes, bytes]]

    def servers(self) -> list[psutil.Process]:
        return serving(self.name)

    def played(self) -> list[tuple[str, int]]:
        """(task, sample) in the order written."""
        return [(episode.task_id, episode.sample) for episode in read_episodes(self.folder)]

    def samples_agree(self) -> bool:
        """Whether all samples of a task got the same replies, as greedy ones do from the same requests."""
        replies: dict[str, set[tuple[str, ...]]] = {}
        for episode in read_episodes(self.folder):
            replies.setdefault(episode.task_id, set()).add(tuple(turn.reply for turn in episode.turns))
        return {len(different) for different in replies.values()} == {1}

    def summary(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return data

    def events(self) -> list[str]:
        """What happened to the server."""
        return [event["event"] for event in self.summary()["performance"]["events"]]


async def begin(
    environment: dict[str, str],
    folder: Path,
    checkpoint: Path,
    server_python: Path,
    *more: object,
    samples: int,
) -> ServedRun:
    """Eight Compass tasks, `samples` times each, two episodes at a time."""
    name = f"tiny-{folder.parent.name}-{time.time_ns()}"
    options = (
        "run", "--model", checkpoint, "--model-name", name, "--vllm", server_python, "--suite", "open",
        "--tasks", "compass", "--limit", 8, "--samples", samples, "--max-turns", 4, "--max-tokens", 12,
        "--concurrency", 2, "-o", folder, *more,
    )  # fmt: skip
    return await _three_more(environment, name, folder, options)


async def go_on(environment: dict[str, str], run: ServedRun) -> ServedRun:
    """The same command once more."""
    return await _three_more(environment, run.name, run.folder, run.options)


async def _three_more(
    environment: dict[str, str], name: str, folder: Path, options: tuple[object, ...]
) -> ServedRun:
    before = finished(folder)
    process = await start(environment, *options)
    ended = asyncio.create_task(process.communicate())
    while finished(folder) < before + 3:
        await asyncio.sleep(0.1)
        assert not ended.done(), (await ended)[1].decode()
    return ServedRun(name, folder, options, process, ended)
