"""Sessions and steps a second of `evalharness env serve`, with clients that answer at once.

    python benchmarks/env_sessions.py babyai --sessions 256 --episodes 512 --turns 10
    python benchmarks/env_sessions.py alfworld --sessions 2048 --group --turns 10

Starts the server (its tasks are of suite seed 1 and are made first where they are not there), opens all sessions, and
lets every one play episodes of `--turns` turns. A real trainer's model takes seconds a turn: what is measured is the
server's own limit. With `--group` one connection plays all sessions as a group, and vanishes at the end with all
episodes open: `freed_s` is the time until another connection can have as many (0: its first message
already could).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import psutil
from aiohttp import ClientSession, ClientWebSocketResponse, TCPConnector

REPLY = "Thought: I look what I can do.\nAction: look around"


async def ask(socket: ClientWebSocketResponse, kind: str, **data: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    await socket.send_json({"type": kind, "data": data})
    answer = await socket.receive_json()
    if answer["type"] == "error":
        raise RuntimeError(answer["data"]["message"])
    return answer["data"], time.perf_counter() - began


async def play(url: str, sessions: int, episodes: int) -> dict[str, Any]:
    numbers = iter(range(episodes))
    resets: list[float] = []
    steps: list[float] = []

    async def client(session: ClientSession, ready: asyncio.Barrier) -> None:
        async with session.ws_connect(f"{url}/ws") as socket:
            await ready.wait()  # all sessions are open
            for _ in numbers:
                answer, took = await ask(socket, "reset")
                resets.append(took)
                while not answer["done"]:
                    answer, took = await ask(socket, "step", text=REPLY)
                    steps.append(took)

    opening = time.perf_counter()
    ready = asyncio.Barrier(sessions + 1)
    # aiohttp opens 100 connections by default and lets the others wait.
    unlimited = TCPConnector(limit=0)
    async with ClientSession(connector=unlimited) as session, asyncio.TaskGroup() as clients:
        for _ in range(sessions):
            clients.create_task(client(session, ready))
        await ready.wait()
        began = time.perf_counter()
    ended = time.perf_counter()
    return {
        "sessions": sessions,
        "episodes": len(resets),
        "steps": len(steps),
        "open_s": began - opening,
        "wall_s": ended - began,
        "episodes_per_s": len(resets) / (ended - began),
        "steps_per_s": len(steps) / (ended - began),
        "reset_ms": quantiles(resets),
        "step_ms": quantiles(steps),
    }


def replies(opening: str) -> list[str]:
    """Walks to what the last part of an ALFWorld opening names: an action that changes nothing costs less there."""
    named = re.findall(r"\ban? ([a-z]+ \d+)", opening.rsplit("Observation:", 1)[-1])
    return [f"Thought: I go on.\nAction: go to {name}" for name in named] or [REPLY]


async def play_group(url: str, sessions: int, turns: int) -> dict[str, Any]:
    """One group; all of its episodes are open when the client vanishes."""
    episodes = {"episodes": [{} for _ in range(sessions)]}
    async with ClientSession() as session:
        socket = await session.ws_connect(f"{url}/ws", max_msg_size=0)
        cold, first_s = await ask(socket, "reset_many", **episodes)
        openings, reset_s = await ask(socket, "reset_many", **episodes)
        scripts = [itertools.cycle(replies(each["observation"]["text"])) for each in openings]
        waits = []
        for _ in range(turns - 1):
            said = [{"text": next(script)} for script in scripts]
            answers, took = await ask(socket, "step_many", replies=said)
            waits.append(took)
        lost = sum("error" in each for each in [*cold, *answers])
        assert socket._response.connection
        assert socket._response.connection.transport
        socket._response.connection.transport.abort()
        began, freed_s = time.perf_counter(), 0.0
        socket = await session.ws_connect(f"{url}/ws", max_msg_size=0)
        while True:
            await socket.send_json({"type": "reset_many", "data": {"episodes": [{}] * sessions}})
            if (await socket.receive_json())["type"] != "error":
                break
            freed_s = time.perf_counter() - began
    return {
        "sessions": sessions,
        "steps": sessions * (turns - 1),
        "lost": lost,
        "first_reset_s": first_s,
        "resets_per_s": sessions / reset_s,
        "steps_per_s": sessions * (turns - 1) / sum(waits),
        "freed_s": freed_s,
    }


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        name: 1000 * ordered[int(share * (len(ordered) - 1))]
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }


def used(pid: int) -> dict[str, float]:
    """Processes, resident bytes and CPU seconds of the server and its workers."""
    server = psutil.Process(pid)
    workers = server.children(recursive=True)
    return {
        "processes": 1 + len(workers),
        "resident": sum(process.memory_info().rss for process in [server, *workers]),
        "server_s": _cpu(server),
        "workers_s": sum(map(_cpu, workers)),
    }


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def connections(url: str, count: int) -> float:
    """Sessions opened and closed a second, without an episode."""
    began = time.perf_counter()
    async with ClientSession() as session:
        for _ in range(count):
            async with session.ws_connect(f"{url}/ws") as socket:
                await socket.send_json({"type": "state"})
                await socket.receive_json()
    return count / (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family")
    parser.add_argument("--sessions", type=int, default=256)
    parser.add_argument("--episodes", type=int, default=512)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--group", action="store_true", help="all sessions on one connection")
    args = parser.parse_args()
    options = ["--port", 0, "--sessions", args.sessions, "--max-turns", args.turns]
    server = subprocess.Popen(
        [sys.executable, "-m", "evalharness", "env", "serve", args.family, *map(str, options)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout
        url = next(line.split()[0] for line in server.stdout if line.startswith("http"))
        opened = asyncio.run(connections(url, 200))
        before = used(server.pid)
        played = (
            play_group(url, args.sessions, args.turns)
            if args.group
            else play(url, args.sessions, args.episodes)
        )
        result = asyncio.run(played)
        after = used(server.pid)
        result |= {"sessions_opened_per_s": opened, "processes": after["processes"]}
        result["resident_mb"] = after["resident"] / 2**20
        # Of the whole run, resets and starts of workers included: what a busy machine does not blur.
        for part in ("server", "workers"):
            spent = after[f"{part}_s"] - before[f"{part}_s"]
            result[f"{part}_cpu_ms_per_step"] = 1000 * spent / result["steps"]
        print(json.dumps({"family": args.family, "turns": args.turns, **result}, indent=2))
    finally:
        server.terminate()
        server.wait(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
