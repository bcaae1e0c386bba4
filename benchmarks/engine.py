"""How fast the engine is, each figure with the bound it is measured against.

    python benchmarks/engine.py [--only a,b,c,d,f] [--episodes 416] [--turns 30] [--json FILE]
    python benchmarks/engine.py --only e,f [--model DIR]      # with a real vLLM (evalharness server install)

a  every open-suite task against a server that takes 200 ms a reply: efficiency (target 0.9), with a server that is
   saturated by 64 requests (320 replies/s, about what an 8B model gives on one GPU), with the same server when it says
   how long its queue is, as vLLM does, and with one that is never saturated, where the machine's own cores are what
   there is
b  the chat client alone, 512 connections, conversations of 31 messages of which two are new: replies/s that one core
   can take (target 3,500)
c  256 episodes in flight: CPU time of the harness's own process a turn (target 0.5 ms)
d  ten times as many episodes: memory from the 400th to the 4,160th (target +-10 %)
e  a real vLLM: tokens/s through the harness over those of vLLM's own benchmark client for the same prompts and
   concurrency (target 0.95); share of prompt tokens from the prefix cache after turn 3 (target 0.9)
f  one episode at a time on the same server, as AgentBoard does, against all at once: the speed-up

The server of a to d and f is a process of its own on this machine (`fixed_latency_server.py`) and takes its share
of the cores, where a real one would be elsewhere: the bound by cores in (a) is the CPU time of the simulators and of
that server, over the cores. The harness's own is not in it. `load` is the machine's load average at the start:
other work makes every figure but (d) worse.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
from engine_vllm import side_by_side, through_vllm

from evalharness.base.machine import usable_cores
from evalharness.base.watching import every
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.models.endpoint import TURN_FORM, ChatEndpoint, Sampling
from evalharness.models.event_loop import run_to_end
from evalharness.models.replicas import Replica, Replicas
from evalharness.play.progress import Progress
from evalharness.runs.evaluation import RunOutcome, evaluate

LATENCY = 0.2
PLACES = 64
"""Requests that the saturated server works on at once."""
SERVER = Path(__file__).with_name("fixed_latency_server.py")


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str
    target: str
    met: bool
    bound: str
    details: dict[str, Any] = field(default_factory=dict)


@contextlib.contextmanager
def fixed_server(
    latency: float = LATENCY, places: int | None = None, *, metrics: bool = False
) -> Iterator[str]:
    command = [sys.executable, SERVER, str(latency), str(places or 0), *(["--metrics"] if metrics else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def open_families() -> dict[str, int]:
    """Families with an open suite, and its number of tasks."""
    counts = {
        family: len(spec.suites.load_tasks("open", None, 0))
        for family, spec in specs().items()
        if spec.own.in_all
    }
    return {family: count for family, count in counts.items() if count}


def selection(episodes: int) -> tuple[str, int]:
    """(--tasks, tasks of each family) that come to about `episodes`, all families in their proportions."""
    counts = open_families()
    share = episodes / sum(counts.values())
    chosen = {family: max(1, min(count, round(count * share))) for family, count in counts.items()}
    return ",".join(f"{family}:0-{count - 1}" for family, count in chosen.items()), sum(chosen.values())


class Cores:
    """How the cores' time was used: by processes that have nothing to do with the benchmark, or by nobody."""

    def __init__(self) -> None:
        self._before = self._look()

    @staticmethod
    def _look() -> tuple[float, float, float]:
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - times.iowait - getattr(times, "guest", 0.0)
        own = 0.0
        me = psutil.Process()
        for process in [me, *me.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                spent = process.cpu_times()
                own += spent.user + spent.system + spent.children_user + spent.children_system
        return time.monotonic(), busy, own

    def shares(self) -> tuple[float, float]:
        """Return the shares of all cores' time since the start, 0..1: (other processes, idle)."""
        wall, busy, own = (now - then for now, then in zip(self._look(), self._before, strict=True))
        whole = wall * (psutil.cpu_count() or 1)
        return max(0.0, min(1.0, (busy - own) / whole)), max(0.0, 1 - busy / whole)


class Watcher:
    """Samples the harness's own memory while a run goes on."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int]] = []
        """(episodes finished, resident bytes)"""
        self.ends: list[float] = []
        """When each episode ended: seconds of the monotonic clock."""
        self.began = 0.0

    @contextlib.contextmanager
    def __call__(self, progress: Progress) -> Iterator[None]:
        process = psutil.Process()
        progress.on_episode = lambda episode: self.ends.append(time.monotonic())

        def sample() -> None:
            done = sum(family.done for family in progress.families.values())
            self.samples.append((done, process.memory_info().rss))

        with every(0.2, sample):
            yield
        self.began = progress.started


def play(url: str, tasks: str, turns: int, **options: Any) -> tuple[RunOutcome, Watcher]:
    watcher = Watcher()
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig.of(
            model=url, model_name="fixed", suite="open", tasks=tasks, max_turns=turns,
            output=Path(folder) / "run", **options,
        )  # fmt: skip
        return evaluate(config, watch=watcher), watcher


def performance(outcome: RunOutcome) -> dict[str, Any]:
    summary = outcome.summary
    seen: dict[str, Any] = summary.to_json()["performance"]
    wall = {"wall_s": summary.wall_s, "turns": summary.turns, "episodes": episodes_of(outcome)}
    return wall | {
        key: seen[key] for key in ("efficiency", "bound", "bounds_s", "time", "concurrency", "workers")
    }


def episodes_of(outcome: RunOutcome) -> int:
    return sum(row.episodes for row in outcome.summary.families.values())


def a_whole_suite(options: argparse.Namespace) -> list[Figure]:
    return [
        _whole_suite(options, f"server saturated at {PLACES}", PLACES),
        _whole_suite(options, "the same with its queue known", PLACES, metrics=True),
        _whole_suite(options, "server without limit", None),
    ]


def _measured_by(url: str) -> tuple[float, list[float]]:
    """Return (CPU seconds of the test server, when it replied)."""
    with urlopen(f"{url.removesuffix('/v1')}/measured") as answer:
        measured = json.load(answer)
    return measured["cpu_s"], measured["reply_times"]


def _whole_suite(
    options: argparse.Namespace, name: str, places: int | None, *, metrics: bool = False
) -> Figure:
    tasks, count = selection(options.episodes)
    with fixed_server(places=places, metrics=metrics) as url:
        machine, (server_before, _) = Cores(), _measured_by(url)
        outcome, watcher = play(url, tasks, options.turns, concurrency=options.concurrency)
        (others, idle), (server_s, replies) = machine.shares(), _measured_by(url)
    summary = outcome.summary.to_json()
    seen, wall, turns = summary["performance"], summary["wall_s"], summary["turns"]
    cpu_s = {
        "harness": seen["client_cpu_s_per_turn"] * turns,
        "simulators": sum(seen["environment_cpu_s"].values()),
        "test server": server_s - server_before,
    }
    bounds = {
        "longest episode": options.turns * LATENCY,
        "CPU of simulators and test server / cores": (cpu_s["simulators"] + cpu_s["test server"])
        / usable_cores(),
    }
    if places:
        bounds["saturated server"] = turns * LATENCY / places
    else:
        bounds["model at the concurrency found"] = turns * LATENCY / seen["concurrency"]["highest"]
    holding = max(bounds, key=lambda name: bounds[name])
    # The first replies answer the harness's look at the server, before the run.
    first = next(at for at in replies if at > watcher.began + LATENCY)
    split = {
        "first reply after": first - watcher.began,
        "last tenth of the episodes": watcher.ends[-1] - watcher.ends[len(watcher.ends) * 9 // 10 - 1],
        **{f"CPU of {who}": seconds for who, seconds in cpu_s.items()},
        "all CPU / cores": sum(cpu_s.values()) / usable_cores(),
        "cores idle": idle * wall,
    }
    return Figure(
        f"a: efficiency, {name}",
        bounds[holding] / wall, "bound/wall", ">= 0.9", bounds[holding] / wall >= 0.9,
        f"{holding}: {bounds[holding]:.1f} s of {wall:.1f} s; other work had {others:.0%} of the cores\n    "
        + ", ".join(f"{what} {seconds:.1f} s" for what, seconds in split.items()),
        {
            "bounds_s": bounds, "episodes": count, "families": list(open_families()), "split_s": split,
            "environment_cpu_s": seen["environment_cpu_s"],
            "share_of_cores_taken_by_other_work": others,
            **performance(outcome),
        },
    )  # fmt: skip


async def _client_alone(url: str, connections: int, seconds: float) -> tuple[float, float]:
    """(replies/s, CPU seconds a reply)"""
    text = "Observation: You are in a room. There is a red ball two steps in front of you and a wall to your left."
    messages = [{"role": "system", "content": "You act in a text world."}]
    for turn in range(30):
        messages.append({"role": "user" if turn % 2 == 0 else "assistant", "content": text})
    endpoint = ChatEndpoint(url, "fixed", sampling=Sampling(), connections=connections)
    await endpoint.start()
    group = Replicas([Replica("one", endpoint)])
    replies = 0
    until = time.perf_counter() + seconds

    async def ask(number: int) -> None:
        nonlocal replies
        player, turn = group.conversation(str(number), 0, TURN_FORM), 0
        while time.perf_counter() < until:
            turn += 1
            said = {"role": "assistant", "content": f"Thought: {turn}"}, {"role": "user", "content": text}
            await player.reply([*messages[:29], *said], turn=turn)
            replies += 1

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(ask(number) for number in range(connections)))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    await endpoint.close()
    return replies / wall, cpu / replies


def b_client_alone(options: argparse.Namespace) -> Figure:
    with fixed_server(options.client_latency) as url:
        rate, cpu = run_to_end(_client_alone(url, 512, options.client_seconds))
    return Figure(
        "b: client alone, on one core", 1 / cpu, "replies/s", ">= 3500", 1 / cpu >= 3500,
        f"{1e3 * cpu:.3f} ms of CPU a reply; {rate:.0f}/s were measured, of the 512 connections / "
        f"{options.client_latency} s = {512 / options.client_latency:.0f}/s that the server gives",
        {"cpu_ms_per_reply": 1e3 * cpu, "replies_per_s": rate, "connections": 512, "messages": 31},
    )  # fmt: skip


def c_harness_cpu(options: argparse.Namespace) -> Figure:
    tasks, _ = selection(max(256, options.episodes))
    with fixed_server() as url:
        outcome, _ = play(url, tasks, options.turns, concurrency=256)
    cpu = 1e3 * outcome.summary.to_json()["performance"]["client_cpu_s_per_turn"]
    return Figure(
        "c: harness CPU a turn", cpu, "ms", "<= 0.5", cpu <= 0.5,
        f"CPU time of the harness's process over {outcome.summary.turns} turns, 256 in flight",
        performance(outcome),
    )  # fmt: skip


def d_memory(options: argparse.Namespace) -> Figure:
    tasks, count = selection(416)
    samples = -(-4160 // count)
    with fixed_server(0.0) as url:
        outcome, watcher = play(url, tasks, options.memory_turns, samples=samples, concurrency=128)
    warm = [size for done, size in watcher.samples if 390 <= done <= 450]
    whole = max(done for done, _ in watcher.samples)
    # While episodes are played: the tables at the end import pandas' and pyarrow's 100 MB.
    later = [size for done, size in watcher.samples if 400 <= done < whole]
    base = sum(warm) / len(warm)
    change = max(later, key=lambda size: abs(size - base)) / base - 1
    return Figure(
        "d: memory", 100 * change, "% change", "+-10 %", abs(change) <= 0.1,
        f"resident memory at episode 400: {base / 2**20:.0f} MiB; at the end of {episodes_of(outcome)}: "
        f"{later[-1] / 2**20:.0f} MiB",
        {"turns_an_episode": options.memory_turns, "at_400_mib": base / 2**20, "max_mib": max(later) / 2**20,
         "by_episodes_mib": {
             done // 400 * 400: round(size / 2**20, 1) for done, size in watcher.samples if done < whole
         },
         "with_tables_mib": watcher.samples[-1][1] / 2**20,
         "end_mib": later[-1] / 2**20, **performance(outcome)},
    )  # fmt: skip


def e_real_vllm(options: argparse.Namespace) -> list[Figure]:
    seen = through_vllm(options.model, options.vllm_episodes, options.vllm_turns)
    return [
        Figure(
            "e: tokens/s, harness over vLLM's client", seen["ratio"], "ratio", ">= 0.95", seen["ratio"] >= 0.95,
            f"vLLM's own client: {seen['client_tokens_per_s']:.1f} tokens/s at concurrency {seen['concurrency']}", seen,
        ),
        Figure(
            "e: prefix cache after turn 3", seen["hit_rate_after_turn_3"], "share of prompt tokens", ">= 0.9",
            seen["hit_rate_after_turn_3"] >= 0.9,
            f"all that was there before: {seen['best_hit_rate_after_turn_3']:.3f}; in blocks of {seen['block']} tokens",
        ),
    ]  # fmt: skip


def f_speed_up(options: argparse.Namespace) -> list[Figure]:
    tasks, count = selection(options.sequential_episodes)
    with fixed_server() as url:
        one, _ = play(url, tasks, options.turns, concurrency=1)
        many, _ = play(url, tasks, options.turns)
    ratio = (one.summary.wall_s or 0) / (many.summary.wall_s or 1)
    figures = [
        Figure(
            "f: speed-up over one at a time (200 ms server)", ratio, "times", "-", True,
            f"{count} episodes at once at best; {one.summary.wall_s:.1f} s against {many.summary.wall_s:.1f} s",
            {"sequential": performance(one), "concurrent": performance(many)},
        )
    ]  # fmt: skip
    if options.vllm_too:
        seen = side_by_side(options.model, options.vllm_episodes, options.vllm_turns)
        figures.append(
            Figure(
                "f: speed-up over one at a time (real vLLM)", seen["speed_up"], "times", "-", True,
                f"{seen['sequential_s']:.0f} s against {seen['concurrent_s']:.0f} s, {seen['episodes']} episodes", seen,
            )
        )  # fmt: skip
    return figures


PARTS: dict[str, Callable[[argparse.Namespace], Figure | list[Figure]]] = {
    "a": a_whole_suite, "b": b_client_alone, "c": c_harness_cpu, "d": d_memory, "e": e_real_vllm, "f": f_speed_up,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="a,b,c,d,f", metavar="PARTS")
    parser.add_argument("--episodes", type=int, default=416)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="a: a fixed number of requests, to compare with what a run finds",
    )
    parser.add_argument("--memory-turns", type=int, default=30, help="turns of an episode in d")
    parser.add_argument("--client-seconds", type=float, default=10.0, help="how long b lasts")
    parser.add_argument("--client-latency", type=float, default=0.1, help="seconds of a reply in b")
    parser.add_argument("--sequential-episodes", type=int, default=16, help="episodes in f")
    parser.add_argument(
        "--model", default="demo", help="checkpoint directory for e (default: the demo model)"
    )
    parser.add_argument("--vllm-episodes", type=int, default=16)
    parser.add_argument("--vllm-turns", type=int, default=8)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    chosen = options.only.split(",")
    options.vllm_too = "e" in chosen
    os.environ["EVALHARNESS_HOME"] = os.environ.get("EVALHARNESS_HOME") or _home()
    load = os.getloadavg()[0]
    figures: list[Figure] = []
    print(f"{usable_cores()} cores, load {load:.1f}")
    for part in chosen:
        made = PARTS[part](options)
        for figure in made if isinstance(made, list) else [made]:
            figures.append(figure)
            met = "met" if figure.met else "NOT MET"
            print(
                f"{figure.name:48} {figure.value:9.3f} {figure.unit:12} {figure.target:8} {met:8} {figure.bound}"
            )
            sys.stdout.flush()
    if options.json:
        seen = {"cores": usable_cores(), "load": load, "figures": [asdict(figure) for figure in figures]}
        options.json.write_text(json.dumps(seen, indent=2) + "\n")


def _home() -> str:
    """The user's server and demo model, without what is remembered of earlier runs."""
    from evalharness.base.paths import cache_folder, server_folder

    home = Path(tempfile.mkdtemp(prefix="evalharness-benchmark-"))
    (home / "cache").mkdir()
    (home / "server").symlink_to(server_folder())
    if (models := cache_folder() / "models").is_dir():
        (home / "cache" / "models").symlink_to(models)
    return str(home)


if __name__ == "__main__":
    main()
