"""Steps a second and memory of AgentGym's ScienceWorld server and of ours, with the same actions, by turns in one run.

    git clone https://github.com/WooooDyy/AgentGym
    python -m venv peer && peer/bin/pip install AgentGym/agentenv-sciworld
    python benchmarks/env_peers.py peer/bin/sciworld --worlds 8

All worlds step at the same time: AgentGym's by a request each, ours by one message on one connection. Actions are few
and always understood; both answer every one with an observation. Prints a table in Markdown, a row a server and round.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout
from env_bare import Walk, used
from env_sessions import Group, served

from evalharness.envs import specs
from evalharness.suites.selection import family_tasks

FAMILY = "sciworld"
ACTIONS = (
    *("look around", "open door to hallway", "go to hallway", "look around"),
    *("inventory", "open door to kitchen", "go to kitchen", "look around"),
)
START_S = 120.0


@dataclass(frozen=True)
class Measured:
    create_s: float
    """Until all worlds have their first observation."""
    steps_per_s: float
    mb_a_world: float
    """Resident, of the server and its children."""
    processes: int


@contextmanager
def agentgym(command: Path) -> Iterator[tuple[str, int]]:
    """URL and process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [command, "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url, end = f"http://127.0.0.1:{port}", time.monotonic() + START_S
    try:
        while not answers(url):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command} does not answer")
            time.sleep(0.2)
        yield url, server.pid
    finally:
        server.terminate()
        server.wait(60)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


async def theirs(url: str, pid: int, worlds: int, actions: Sequence[str]) -> Measured:
    async with ClientSession(timeout=ClientTimeout(600)) as client:

        async def ask(path: str, **body: Any) -> Any:
            async with client.post(f"{url}/{path}", json=body) as response:
                answer = await response.json()
            if response.status != 200 or (isinstance(answer, dict) and "error" in answer):
                raise RuntimeError(f"{path}: {answer}")
            return answer

        async def begin(number: int) -> int:
            made = await ask("create")
            world: int = made if isinstance(made, int) else made["id"]
            await ask("reset", id=world, data_idx=number)
            return world

        began = time.perf_counter()
        ids = await asyncio.gather(*map(begin, range(worlds)))
        create_s = time.perf_counter() - began
        began = time.perf_counter()
        for action in actions:
            await asyncio.gather(*(ask("step", id=world, action=action) for world in ids))
        return measured(pid, worlds, create_s, len(actions), time.perf_counter() - began)


async def ours(url: str, pid: int, worlds: int, actions: Sequence[str]) -> Measured:
    tasks = itertools.cycle(family_tasks(specs()[FAMILY], "open", None, 0))
    walks = [Walk(task, tuple(actions)) for task in itertools.islice(tasks, worlds)]
    async with ClientSession() as client:
        group = Group(await client.ws_connect(f"{url}/ws", max_msg_size=0), walks, worlds)
        answers, create_s = await group.reset()
        began = time.perf_counter()
        for _ in actions:
            said, _ = await group.step(list(range(worlds)))
            answers += said
        took = time.perf_counter() - began
        if failed := [said for said in answers if "observation" not in said]:
            raise RuntimeError(str(failed[0]))
        return measured(pid, worlds, create_s, len(actions), took)


def measured(pid: int, worlds: int, create_s: float, turns: int, took: float) -> Measured:
    now = used(pid)
    return Measured(create_s, worlds * turns / took, now.mb / worlds, now.processes)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", type=Path, help="AgentGym's server")
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--turns", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    actions = tuple(itertools.islice(itertools.cycle(ACTIONS), args.turns))
    columns = ("server", "worlds", "all begun, s", "steps/s", "MB a world", "processes")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for _ in range(args.rounds):
        with agentgym(args.command.resolve()) as (url, pid):
            show("AgentGym", args.worlds, asyncio.run(theirs(url, pid, args.worlds, actions)))
        with served(FAMILY, args.worlds, args.turns + 1, []) as (url, pid):
            show("ours", args.worlds, asyncio.run(ours(url, pid, args.worlds, actions)))


def show(server: str, worlds: int, found: Measured) -> None:
    figures = (f"{found.create_s:.1f}", f"{found.steps_per_s:,.0f}", f"{found.mb_a_world:.3g}")
    print(f"| {server} | {worlds} | {' | '.join(figures)} | {found.processes} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
