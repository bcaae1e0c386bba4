"""The published way to evaluate against ours, on the same server and tasks in one run: turns/s and CPU a turn.

    python benchmarks/against_agentboard.py [--published-episodes 8] [--episodes 356] [--places 128] [--json FILE]

The published way is a stand-in written for this benchmark after AgentBoard's rules, not its code: one process, one
episode after another, one blocking request at a time; every turn sends instruction, example, goal and the whole history
as one user message; the environment is the stock library's (`ScienceWorldEnv.step`, TextWorld's PDDL environment
with admissible commands, `jericho.FrotzEnv`, minigrid's `step` with the view that it draws). It is lighter than the
original: its client is `http.client` on one connection that stays open, it counts no tokens, and writes no logs.
PDDL is left out on both sides: its stock library does not install beside current ones.

Its speed is the same for the first episodes as for all of them, so it plays a few (of every family alike) and is
compared by turns a second. The server answers every request after 200 ms and says the same to all; it works on
`--places` at once. `on paper` is the ratio with `--paper-cores` cores for the simulators, from the CPU time a turn that
was measured here, at the same server.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from engine import LATENCY, _home, fixed_server, play

from evalharness.base.machine import usable_cores
from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import load_prompt

FAMILIES = ("alfworld", "babyai", "jericho", "sciworld")
Step = Callable[[str], str]


@dataclass(frozen=True)
class Measured:
    episodes: int
    turns: int
    wall_s: float
    cpu_s: float
    """Of all processes but the model's server."""

    @property
    def turns_per_s(self) -> float:
        return self.turns / self.wall_s

    @property
    def cpu_ms_per_turn(self) -> float:
        return 1000 * self.cpu_s / self.turns


class Stock:
    """The stock libraries, each kept from episode to episode where it can be."""

    def __init__(self) -> None:
        self._science: Any = None

    def start(self, task: Task) -> tuple[str, Step]:
        """(first observation, what an action is answered)"""
        found: tuple[str, Step] = getattr(self, f"_{task.family}")(task)
        return found

    def _sciworld(self, task: Task) -> tuple[str, Step]:
        from scienceworld import ScienceWorldEnv

        if self._science is None:
            self._science = ScienceWorldEnv("")
        payload = task.payload
        self._science.load(payload["task"], payload["variation"], payload["simplifications"])
        first = self._science.reset()[0]
        return str(first), lambda action: str(self._science.step(action)[0])

    def _alfworld(self, task: Task) -> tuple[str, Step]:
        from evalharness.envs.alfworld.adapter import _game
        from evalharness.envs.alfworld.stock import TextWorldGame

        world = TextWorldGame(_game(task, None))

        def step(action: str) -> str:
            text = world.step(action)
            world.commands()
            return text

        return world.reset(), step

    def _jericho(self, task: Task) -> tuple[str, Step]:
        import jericho

        from evalharness.envs.jericho.observation import clean
        from evalharness.envs.jericho.open.generator import story_of

        game = jericho.FrotzEnv(str(story_of(task)))
        return clean(game.reset()[0]), lambda action: clean(game.step(action)[0])

    def _babyai(self, task: Task) -> tuple[str, Step]:
        from evalharness.envs.babyai.levels import make_level
        from evalharness.envs.babyai.observation import describe
        from evalharness.envs.babyai.view import look

        simulator = make_level(task.payload["level"], task.payload["seed"], task.payload.get("parameters"))
        del simulator.gen_obs, simulator._reward  # what `make_level` replaces on the instance

        def step(action: str) -> str:
            # An action stands for several moves of the simulator: one turn to the left and back.
            for move in (simulator.actions.left, simulator.actions.right):
                simulator.step(move)
            return describe(look(simulator))

        return describe(look(simulator)), step


def published(url: str, tasks: list[Task], turns: int) -> Measured:
    """Plays the tasks one after another, and waits for everything it asks."""
    stock, place = Stock(), urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    played, began = 0, time.perf_counter()
    for task in tasks:
        observation, step = stock.start(task)
        spec = specs()[task.family]
        prompt, surface = load_prompt(spec).for_kind(task.kind), ActionSurface(spec.actions.templates)
        system, user = prompt.messages(surface, task.goal, observation)
        history = [user["content"]]
        for _ in range(turns):
            messages = [system, {"role": "user", "content": "\n".join([*history, "Action: "])}]
            body = {"model": "fixed", "temperature": 0, "max_tokens": 100, "messages": messages}
            connection.request(
                "POST",
                f"{place.path}/chat/completions",
                json.dumps(body),
                {"Content-Type": "application/json"},
            )
            answer = json.loads(connection.getresponse().read())
            action = (
                answer["choices"][0]["message"]["content"].rpartition("Action:")[2].strip().splitlines()[0]
            )
            history += [f"Action: {action}", f"Observation: {step(action)}"]
            played += 1
    return Measured(len(tasks), played, time.perf_counter() - began, _cpu_of_this_tree())


def _cpu_of_this_tree() -> float:
    me = psutil.Process()
    times = [process.cpu_times() for process in (me, *me.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def first_tasks(count: int) -> list[Task]:
    """As many of each family."""
    found = [
        specs()[family].suites.load_tasks("open", None, 0)[: -(-count // len(FAMILIES))]
        for family in FAMILIES
    ]
    return [task for group in zip(*found, strict=True) for task in group][:count]


def chosen(episodes: int) -> str:
    """--tasks: the families in the proportions of their suites, `episodes` in all."""
    counts = {family: len(specs()[family].suites.load_tasks("open", None, 0)) for family in FAMILIES}
    share = min(1.0, episodes / sum(counts.values()))
    return ",".join(f"{family}:0-{max(1, round(count * share)) - 1}" for family, count in counts.items())


def the_published_way(url: str, options: argparse.Namespace) -> Measured:
    """In a process of its own, so that its CPU time is its own."""
    command = [sys.executable, __file__, "--as-published", url, "--turns", str(options.turns)]
    command += ["--published-episodes", str(options.published_episodes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def ours(url: str, options: argparse.Namespace) -> tuple[Measured, float, float]:
    """(measured, CPU seconds of simulators a turn, of the harness's own process a turn)"""
    outcome, _ = play(url, chosen(options.episodes), options.turns)
    summary = outcome.summary.to_json()
    seen, turns = summary["performance"], summary["turns"]
    environments = sum(seen["environment_cpu_s"].values())
    harness = seen["client_cpu_s_per_turn"] * turns
    episodes = sum(row.episodes for row in outcome.summary.families.values())
    measured = Measured(episodes, turns, summary["wall_s"], environments + harness)
    return measured, environments / turns, harness / turns


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--published-episodes", type=int, default=8, metavar="N")
    parser.add_argument("--episodes", type=int, default=356, metavar="N", help="ours plays as many")
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--places", type=int, default=128)
    parser.add_argument("--paper-cores", type=int, default=16)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--as-published", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_published:
        found = published(options.as_published, first_tasks(options.published_episodes), options.turns)
        print(json.dumps(asdict(found)))
        return
    os.environ["EVALHARNESS_HOME"] = os.environ.get("EVALHARNESS_HOME") or _home()
    load = os.getloadavg()[0]
    with fixed_server(places=options.places) as url:
        theirs = the_published_way(url, options)
        mine, simulators, harness = ours(url, options)
    paper = {
        "server": options.places / LATENCY,
        "simulators": options.paper_cores / simulators,
        "harness": 1 / harness,
    }
    bound = min(paper, key=lambda name: paper[name])
    figures = {
        "cores": usable_cores(), "load": load, "places": options.places, "families": FAMILIES,
        "published": asdict(theirs), "ours": asdict(mine), "ratio": mine.turns_per_s / theirs.turns_per_s,
        "cpu_ratio": theirs.cpu_ms_per_turn / mine.cpu_ms_per_turn,
        "on_paper": {"cores": options.paper_cores, "turns_per_s": paper, "bound": bound,
                     "ratio": paper[bound] / theirs.turns_per_s},
    }  # fmt: skip
    for name, each in (("the published way", theirs), ("ours", mine)):
        print(
            f"{name:18} {each.episodes:4} episodes {each.turns:6} turns {each.wall_s:7.1f} s"
            f" {each.turns_per_s:8.1f} turns/s {each.cpu_ms_per_turn:6.2f} ms of CPU a turn"
        )
    print(f"{figures['ratio']:.0f} times the turns/s, {figures['cpu_ratio']:.1f} times less CPU a turn")
    print(
        f"on paper, {options.paper_cores} cores for simulators: {paper[bound]:.0f} turns/s"
        f" (bound by the {bound}), {paper[bound] / theirs.turns_per_s:.0f} times"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
