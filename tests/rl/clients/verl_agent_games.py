"""A program: verl-agent's own manager over its own ALFWorld, and over our client, through the same games.

    python verl_agent_games.py CHECKOUT URL GAMES SEED COUNT

GAMES has for each task of the server a folder with its game file, `plans.json` an action plan. Of verl-agent's code all
that plays is its own; what it imports for graphics cards and clusters is replaced: `torch`, `torchvision`, `ray` (a
remote call is a call), and its package for DiscoveryWorld. Prints one JSON object: what was compared and what differs.
"""

from __future__ import annotations

import json
import os
import random
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

CHECKOUT, URL, GAMES, SEED, COUNT = (
    sys.argv[1],
    sys.argv[2],
    Path(sys.argv[3]),
    int(sys.argv[4]),
    int(sys.argv[5]),
)
THEIRS = Path(CHECKOUT) / "agent_system" / "environments" / "env_package" / "alfworld"
GROUP = 2


class _Remote:
    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def remote(self, *arguments: Any) -> Any:
        made = self.kind(*arguments)
        calls = {name: types.SimpleNamespace(remote=getattr(made, name)) for name in ("reset", "step")}
        return types.SimpleNamespace(**calls)


def _stand_in(name: str, **has: Any) -> types.ModuleType:
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(has)
    return module


_stand_in("torch", Tensor=type("Tensor", (), {}))
_stand_in("torchvision", transforms=_stand_in("torchvision.transforms"))
_stand_in(
    "ray",
    is_initialized=lambda: True,
    remote=lambda **_: _Remote,
    get=lambda results: results,
    kill=lambda worker: None,
)
_stand_in("agent_system.environments.env_package.discovery")
_stand_in("agent_system.environments.env_package.discovery.actions", all_plausible_action_mapper=None)
sys.path[:0] = [CHECKOUT, str(THEIRS)]  # the second: its copy of `alfworld`

from agent_system.environments.env_manager import AlfWorldEnvironmentManager  # noqa: E402
from agent_system.environments.env_package.alfworld import (  # noqa: E402
    alfworld_projection,
    build_alfworld_envs,
)
from omegaconf import OmegaConf  # noqa: E402

from evalharness.rl.clients.verl import build_alfworld_envs as our_alfworld_envs  # noqa: E402


def manager(envs: Any) -> Any:
    config = OmegaConf.create({"env": {"history_length": 2}})
    return AlfWorldEnvironmentManager(envs, partial(alfworld_projection), config)


def own_manager(task_id: str) -> Any:
    os.environ["ALFWORLD_DATA"] = str(GAMES / task_id.replace("/", "_"))
    return manager(build_alfworld_envs(str(THEIRS / "configs" / "config_tw.yaml"), SEED, 1, GROUP, {}))


def reply(draw: random.Random, action: str) -> str:
    """A good reply, or one of those that its projection calls invalid and carries out all the same."""
    good = f"<think>so\nI act</think>\n<action> {action} </action>"
    return draw.choice(
        [good] * 4
        + [
            good.upper(),
            f"<action>{action}</action>",
            action,
            "",
            "<think>x</think>",
            "<think>好</think>" + good,
        ]
    )


def seen(result: Any, place: int) -> dict[str, Any]:
    observations, *rest = result
    info = rest[-1][place]
    found = {name: observations[name][place] for name in ("text", "anchor")}
    found |= {"won": bool(info["won"]), "fields": sorted(info), "image": observations["image"]}
    if len(rest) == 3:
        found |= {"reward": float(rest[0][place]), "done": bool(rest[1][place])}
        found |= {"valid": int(info["is_action_valid"])}
    return found


def main() -> dict[str, Any]:
    plans = json.loads((GAMES / "plans.json").read_text())
    ours = manager(our_alfworld_envs(URL, SEED, COUNT, GROUP))
    opened = ours.reset({})
    task_ids = [info["extra.gamefile"].split("/", 1)[1] for info in opened[1]]
    kinds = [info["extra.gamefile"].split("/", 1)[0] for info in opened[1]]
    own = [own_manager(task_ids[place]) for place in range(0, len(task_ids), GROUP)]
    counts = {"games": len(own), "episodes": len(task_ids), "tasks": len(set(task_ids))}
    counts |= {"prompts": 0, "rewards": 0, "won": 0, "cut": 0}
    differences: list[Any] = []

    def compare(place: int, mine: Any, theirs: Any, *, prompt: bool) -> None:
        a, b = seen(mine, place), seen(theirs, place % GROUP)
        if not prompt:  # an episode that is over: verl-agent builds a prompt, and trains on no reply to it
            a.pop("text"), b.pop("text")
        counts["prompts"] += prompt
        counts["rewards"] += "reward" in a
        if a != b:
            differences.append([task_ids[place], {k: [a[k], b[k]] for k in a if a[k] != b.get(k)}])

    for place in range(len(task_ids)):
        if place % GROUP == 0:
            theirs = own[place // GROUP].reset({})
        compare(place, opened, theirs, prompt=True)
    over, step = [False] * len(task_ids), 0
    at = [0] * len(task_ids)
    while not all(over) and step < 60:
        step += 1
        said = []
        for place, task_id in enumerate(task_ids):
            draw = random.Random(f"{task_id}/{place}/{step}")
            listed = own[place // GROUP].envs.get_admissible_commands[place % GROUP]
            wanders = place % 8 == 7  # every fourth game has one episode that runs into the step limit
            plan = plans[task_id]
            action = draw.choice(listed) if wanders else plan[min(at[place], len(plan) - 1)]
            said.append(reply(draw, action))
            read, _ = alfworld_projection([said[-1]], [listed])
            at[place] += read[0] == action.lower() and not wanders
        mine = ours.step(list(said))
        for place in range(len(task_ids)):
            if place % GROUP == 0:
                theirs = own[place // GROUP].step(said[place : place + GROUP])
            was_over, over[place] = over[place], bool(mine[2][place])
            if not was_over and over[place]:
                counts["won" if mine[3][place]["won"] else "cut"] += 1
            compare(place, mine, theirs, prompt=not over[place])
    last = list(mine[3])
    rows = [[{"active_masks": True}]] * len(last)
    success = ours.success_evaluator(total_infos=[[info] for info in last], total_batch_list=rows)
    rates = {name: float(values.mean()) for name, values in success.items()}
    ours.close()
    return {"counts": counts, "kinds": sorted(set(kinds)), "rates": rates, "differences": differences[:5]}


print(json.dumps(main()))
