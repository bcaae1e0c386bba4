"""Steps a second, latencies and memory of `evalharness env serve`, by family, beside the simulator's own bound.

    python benchmarks/env_sessions.py                                   # all families, a table in Markdown
    python benchmarks/env_sessions.py alfworld --sessions 2048 --json out.json
    python benchmarks/env_sessions.py alfworld --sessions 256 --soak 60 # an hour; a worker is killed every minute

One connection plays a group of episodes that answers at once, with the random walks of `env_bare.py`. A real
trainer's model takes seconds a turn: what is measured is the server's own limit. The columns:

steps/s    of the whole group, wall time
bound      what the cores would do with nothing but our simulator's bare steps (CPU time, so a busy machine does not
           blur it)
stock      the same for the stock library
CPU ms     of a step through the server, all processes together / bare / stock
resets/s   of a whole group that begins again, wall time
reset ms   p50 / p99 of one reset after another on a second connection, while all the group's episodes are live
MB         resident memory of server and workers, a session; in brackets the stock library's, a world
lost       episodes without an observation or an error in their place
freed s    the client vanishes with all episodes open: until another can have as many (0: its first message could)

Tasks are those of suite seed 0, which is built in. The soak counts what became of every episode that began.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
from aiohttp import ClientSession, ClientWebSocketResponse
from env_bare import FAMILIES, Bare, Walk, ours, stock, used, walks

from evalharness.base.machine import usable_cores

SESSIONS = {"alfworld": 2048}
"""Live episodes, where it is not 256."""
RESETS = 200
"""One after another, for p50 and p99."""
KILL_EVERY_S = 60.0
ANSWER_S = 300.0
"""A message that is not answered in this time ends the benchmark."""


class Group:
    """One connection and its episodes; the same place always plays the same walk."""

    def __init__(self, socket: ClientWebSocketResponse, recorded: Sequence[Walk], sessions: int) -> None:
        self.socket = socket
        played = list(itertools.islice(itertools.cycle(recorded), sessions))
        self.episodes = [{"index": walk.task.index} for walk in played]
        self._walks = [walk.actions for walk in played]
        self._turns = [0] * sessions

    async def ask(self, kind: str, **data: Any) -> tuple[list[dict[str, Any]], float]:
        began = time.perf_counter()
        await self.socket.send_json({"type": kind, "data": data})
        answer = await self.socket.receive_json(timeout=ANSWER_S)
        if answer["type"] == "error":
            raise RuntimeError(answer["data"]["message"])
        return answer["data"], time.perf_counter() - began

    async def reset(self, places: Sequence[int] | None = None) -> tuple[list[dict[str, Any]], float]:
        """All as a new group, or some places again."""
        for place in range(len(self.episodes)) if places is None else places:
            self._turns[place] = 0
        if places is None:
            return await self.ask("reset_many", episodes=self.episodes)
        return await self.ask(
            "reset_many", episodes=[self.episodes[place] for place in places], places=places
        )

    async def step(self, places: Sequence[int]) -> tuple[list[dict[str, Any]], float]:
        replies = []
        for place in places:
            action = self._walks[place][self._turns[place]]
            replies.append({"text": f"Thought: I go on.\nAction: {action}"})
            self._turns[place] += 1
        return await self.ask("step_many", replies=replies, places=places)


async def measure(url: str, pid: int, recorded: Sequence[Walk], sessions: int) -> dict[str, Any]:
    everywhere = range(sessions)
    turns = len(recorded[0].actions)
    async with ClientSession() as client:
        group = Group(await client.ws_connect(f"{url}/ws", max_msg_size=0), recorded, sessions)
        cold, first_s = await group.reset()
        warm, reset_s = await group.reset()
        answers, waited, before = [cold, warm], 0.0, used(pid)
        for _ in range(turns - 1):
            stepped, took = await group.step(list(everywhere))
            answers.append(stepped)
            waited += took
        after = used(pid)
        steps = sessions * (turns - 1)
        apart = Group(await client.ws_connect(f"{url}/ws", max_msg_size=0), recorded, len(recorded))
        latencies = []
        for number in range(RESETS):
            _, took = await apart.ask("reset", **apart.episodes[number % len(recorded)])
            latencies.append(1000 * took)
        await apart.socket.close()
        return {
            "sessions": sessions,
            "steps": steps,
            "lost": sum("observation" not in each for said in answers for each in said),
            "first_reset_s": first_s,
            "resets_per_s": sessions / reset_s,
            "steps_per_s": steps / waited,
            "step_cpu_ms": 1000 * (after.cpu_s - before.cpu_s) / steps,
            "reset_ms_p50": sorted(latencies)[RESETS // 2],
            "reset_ms_p99": sorted(latencies)[int(0.99 * (RESETS - 1))],
            "processes": after.processes,
            "mb": after.mb,
            "mb_a_session": after.mb / sessions,
            "freed_s": await vanish(client, url, group),
        }


async def vanish(client: ClientSession, url: str, group: Group) -> float:
    """Seconds until another client can have as many episodes; it asks for a task that is not there, so that no world
    is made."""
    connection = group.socket._response.connection
    assert connection
    assert connection.transport
    connection.transport.abort()
    began, freed_s = time.perf_counter(), 0.0
    socket = await client.ws_connect(f"{url}/ws", max_msg_size=0)
    while True:
        nothing = [{"index": 10**6}] * len(group.episodes)
        await socket.send_json({"type": "reset_many", "data": {"episodes": nothing}})
        if (await socket.receive_json(timeout=ANSWER_S))["type"] != "error":
            return freed_s
        freed_s = time.perf_counter() - began


async def soak(
    url: str, pid: int, recorded: Sequence[Walk], sessions: int, minutes: float, kill_every_s: float
) -> dict[str, Any]:
    """Every episode that began has to end, or its client has to get an error in its place."""
    chance, count = random.Random(0), dict.fromkeys(("begun", "ended", "failed", "steps", "killed"), 0)
    mb: list[float] = []
    end = time.monotonic() + 60 * minutes
    next_kill = time.monotonic() + kill_every_s
    async with ClientSession() as client:
        group = Group(await client.ws_connect(f"{url}/ws", max_msg_size=0), recorded, sessions)
        idle, live = list(range(sessions)), list[int]()
        while True:
            going_on = time.monotonic() < end
            if idle and going_on:
                said, _ = await group.reset(None if not count["begun"] else idle)
                count["begun"] += len(said)
                live += [place for place, each in zip(idle, said, strict=True) if "observation" in each]
                count["failed"] += sum("error" in each for each in said)
                idle = [place for place in range(sessions) if place not in set(live)]
            if not live:
                if going_on:
                    continue
                break
            said, _ = await group.step(live)
            over = [place for place, each in zip(live, said, strict=True) if each.get("done", True)]
            count["steps"] += len(said)
            count["failed"] += sum("error" in each for each in said)
            count["ended"] += sum(each.get("done", False) for each in said)
            live = [place for place in live if place not in set(over)]
            idle += over
            if time.monotonic() >= next_kill and going_on:
                next_kill += kill_every_s
                mb.append(used(pid).mb)
                workers = psutil.Process(pid).children()
                os.kill(chance.choice(workers).pid, signal.SIGKILL)
                count["killed"] += 1
                print(f"  {count}, {mb[-1]:,.0f} MB", file=sys.stderr, flush=True)
        mb = mb or [used(pid).mb]
    return {
        **count,
        "lost_silently": count["begun"] - count["ended"] - count["failed"],
        "mb_first": mb[0],
        "mb_last": mb[-1],
        "mb_most": max(mb),
        "minutes": minutes,
    }


@contextmanager
def served(family: str, sessions: int, turns: int) -> Iterator[tuple[str, int]]:
    """URL and process."""
    options = ["--port", 0, "--sessions", sessions + 1, "--max-turns", turns]
    command = [sys.executable, "-m", "evalharness", "env", "serve", family, *map(str, options)]
    command += ["--train-seeds", "0", "--allow-eval-tasks"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout
        yield next(line.split()[0] for line in server.stdout if line.startswith("http")), server.pid
    finally:
        server.terminate()
        server.wait(60)


COLUMNS = (
    *("family", "live sessions", "steps/s", "bound", "stock", "CPU ms", "resets/s", "reset ms"),
    *("processes", "MB", "lost", "freed s"),
)


def row(family: str, found: dict[str, Any], bare: Bare, theirs: Bare | None) -> str:
    cores = usable_cores()
    cpu = " / ".join(
        f"{ms:.3g}" for ms in (found["step_cpu_ms"], bare.step_ms, *([theirs.step_ms] if theirs else []))
    )
    cells = [
        family,
        f"{found['sessions']:,}",
        f"{found['steps_per_s']:,.0f}",
        f"{1000 * cores / bare.step_ms:,.0f}",
        "" if theirs is None else f"{1000 * cores / theirs.step_ms:,.0f}",
        cpu,
        f"{found['resets_per_s']:,.0f}",
        f"{found['reset_ms_p50']:.0f} / {found['reset_ms_p99']:.0f}",
        str(found["processes"]),
        f"{found['mb_a_session']:.2g}" + ("" if theirs is None else f" ({theirs.mb:.0f})"),
        str(found["lost"]),
        f"{found['freed_s']:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", default=FAMILIES, metavar="FAMILY")
    parser.add_argument("--sessions", type=int, help="live episodes (256; 2048 of ALFWorld)")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=8, help="different tasks in a group")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="play on, and kill workers")
    parser.add_argument("--kill-every", type=float, default=KILL_EVERY_S, metavar="S", help="of --soak (60)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    figures: dict[str, Any] = {}
    if not args.soak:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for family in args.families:
        sessions = args.sessions or SESSIONS.get(family, 256)
        recorded = walks(family, args.tasks, args.turns)
        if args.soak:
            with served(family, sessions, args.turns) as (url, pid):
                found = asyncio.run(soak(url, pid, recorded, sessions, args.soak, args.kill_every))
            figures[family] = found
            print(family, json.dumps(found), flush=True)
            continue
        bare, theirs = ours(family, recorded), stock(family, recorded)
        with served(family, sessions, args.turns) as (url, pid):
            found = asyncio.run(measure(url, pid, recorded, sessions))
        figures[family] = {**found, "bare": asdict(bare), "stock": theirs and asdict(theirs)}
        print(row(family, found, bare, theirs), flush=True)
    if args.json:
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
