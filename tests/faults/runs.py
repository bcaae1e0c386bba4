"""Runs to be broken: a model that always says the same to the same request, and the comparison afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import psutil
from chat_server import ChatServer
from command_line import Started, assert_same_results, run_compass, start

from evalharness.records.store import read_episodes

_SAYINGS = (
    "Thought: on\nAction: turn left",
    "Thought: on\nAction: turn left",
    "Thought: back\nAction: turn right",
    "Thought: what is there?\nAction: check valid actions",
    "Thought: é \u202e \x1b[31m\nAction: turn up",
    "I would rather not.",
)


def answer(request: dict[str, Any]) -> str:
    """Depends on the conversation and the seed alone, as a model's reply does: a turn that was asked again with
    another seed, or after another history, would be answered otherwise."""
    text = json.dumps([request["messages"], request["seed"]], sort_keys=True)
    return _SAYINGS[hashlib.sha256(text.encode()).digest()[0] % len(_SAYINGS)]


def options(server: ChatServer, *more: object) -> tuple[object, ...]:
    return ("--model", server.url, "--model-name", "toy", "--temperature", 0.7, "--max-turns", 6, *more)


def asked(server: ChatServer) -> set[str]:
    """Every different chat request that the server has seen since it was last asked."""
    seen = {json.dumps(request, sort_keys=True) for request in server.requests}
    server.requests.clear()
    return seen


async def play(environment: dict[str, str], folder: Path, *arguments: object, status: int = 0) -> str:
    """Run to the end; returns what it printed to standard error."""
    done = await asyncio.to_thread(run_compass, environment, folder, *arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


async def begin(environment: dict[str, str], folder: Path, *arguments: object) -> Started:
    return await start(environment, "run", "--suite", "open", "--tasks", "compass", "-o", folder, *arguments)


def assert_equal_runs(whole: Path, broken: Path) -> None:
    """Nothing double, nothing missing, nothing different but times."""
    keys = [(episode.task_id, episode.sample) for episode in read_episodes(broken)]
    assert len(keys) == len(set(keys))
    assert_same_results(whole, broken)


def errors(folder: Path) -> list[dict[str, Any]]:
    path = folder / "errors.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def processes(pid: int, word: str) -> list[psutil.Process]:
    """Descendants of `pid` with `word` in their command line, oldest first."""
    found = []
    try:
        descendants = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    for process in descendants:
        try:
            if word in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return sorted(found, key=lambda process: process.create_time())
