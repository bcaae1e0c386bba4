"""`--dry-run`: what a run would play, ask, start and write, as far as that is known before it; nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from evalharness.agents.base import EpisodeStart
from evalharness.base.errors import UserError
from evalharness.base.terminal import plain_table, words
from evalharness.config import RunConfig
from evalharness.envs.base import EnvSpec, Task
from evalharness.models.opened import Prepared
from evalharness.models.resolve import prepare
from evalharness.models.served import NoAnswerError
from evalharness.models.serving.find import ServerNotFound
from evalharness.protocol.prompt import Message
from evalharness.records.cost import Tokens, prices_of
from evalharness.records.identity import changes
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import MANIFEST, read_episodes, read_manifest
from evalharness.runs.evaluation import RunTasks, choose
from evalharness.runs.resume import identity_of_fewer_tasks
from evalharness.suites.selection import tasks_at_hand

_CHARACTERS_A_TOKEN = 4
_TURN_TOKENS = (120.0, 60.0)
"""Tokens that a turn adds to the conversation, and those of its reply."""


@dataclass(frozen=True)
class FamilyPlan:
    family: str
    tasks: int
    episodes: int
    left: int
    """Episodes still to play."""
    kinds: Mapping[str, int]
    turns: float
    """Expected of all that is left."""
    prompt_tokens: float
    completion_tokens: float
    first_task: str
    messages: Sequence[Message]
    """What a model reads before its first reply to that task."""


@dataclass(frozen=True)
class Plan:
    families: Sequence[FamilyPlan]
    folder: Path
    folder_is_certain: bool
    """It is not where the model's server, which has a say in the name, gives no answer."""
    there: bool
    """The folder holds a run already."""
    refused: Sequence[str]
    """Why that run cannot be continued so, a line each."""
    server: str
    """The command line of the vLLM that is started, or who is asked."""
    cost: float | None = None
    """Of what is left, in the currency of `--prices` and without a cache; None where nothing is to pay."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "folder": str(self.folder)}


def dry_run(config: RunConfig, *, data: Path | None, on_status: Callable[[str], None]) -> Plan:
    """Raises UserError for what a run would refuse, and where the tasks' open suite is still to be made; that no server
    answers, or no vLLM is installed, is only said."""
    chosen = choose(config, data, tasks_at_hand)
    prepared, server = _prepared(config, chosen.specs, on_status)
    folder = config.folder(prepared.address if prepared else None)
    there = (folder / MANIFEST).exists()
    done = {(e.task_id, e.sample) for e in read_episodes(folder)} if there else set()
    refused = _refused(config, chosen, prepared, data, folder) if there and prepared else []
    families = []
    for family in sorted(chosen.prompts):
        on_status(f"first prompt of {chosen.specs[family].title}")
        families.append(_family_plan(config, chosen, family, done, data))
    certain = prepared is not None or not config.policy.is_endpoint or config.execution.output is not None
    return Plan(families, folder, certain, there, refused, server, _cost(config, families))


def _cost(config: RunConfig, families: Sequence[FamilyPlan]) -> float | None:
    prices = prices_of(config.policy)
    prompt, completion = (
        round(sum(getattr(family, name) for family in families))
        for name in ("prompt_tokens", "completion_tokens")
    )
    return prices.of(Tokens(prompt, 0, completion)) if prices else None


def _prepared(
    config: RunConfig, specs: Mapping[str, EnvSpec], on_status: Callable[[str], None]
) -> tuple[Prepared | None, str]:
    try:
        prepared = prepare(
            config.policy,
            specs,
            on_status,
            agent=config.agent,
            outside=config.outside,
            cluster=config.execution.cluster,
        )
    except (NoAnswerError, ServerNotFound) as error:  # a login node has neither
        return None, str(error)
    if config.policy.is_scripted and not config.policy.is_external:
        return prepared, "none: the policy is a script"
    return prepared, prepared.server()


def _refused(
    config: RunConfig, chosen: RunTasks, prepared: Prepared, data: Path | None, folder: Path
) -> list[str]:
    hashes = {family: prompt.sha256 for family, prompt in chosen.prompts.items()}
    now = make_manifest(config, chosen.tasks, chosen.specs, hashes, prepared.identity, data)
    earlier = read_manifest(folder).identity.to_json()
    smaller = identity_of_fewer_tasks(config, folder, chosen.specs, chosen.tasks, now, data)
    if smaller is not None and not changes(earlier, smaller):
        return []
    return changes(earlier, now.identity.to_json())


def _family_plan(
    config: RunConfig,
    chosen: RunTasks,
    family: str,
    done: set[tuple[str, int]],
    data: Path | None,
) -> FamilyPlan:
    tasks = [task for task in chosen.tasks if task.family == family]
    limit = chosen.turn_limits[family]
    messages = [] if config.policy.is_scripted else _first_prompt(config, chosen, tasks[0], data)
    left = [
        task for task in tasks for sample in range(config.selection.samples) if (task.id, sample) not in done
    ]
    head = sum(len(str(message["content"])) for message in messages) / _CHARACTERS_A_TOKEN
    growth, reply = _TURN_TOKENS
    reply = min(reply, float(config.policy.max_tokens))
    asked = not config.policy.is_scripted
    kinds: dict[str, int] = {}
    for task in tasks:
        kinds[task.kind] = kinds.get(task.kind, 0) + 1
    return FamilyPlan(
        family=family,
        tasks=len(tasks),
        episodes=len(tasks) * config.selection.samples,
        left=len(left),
        kinds=kinds,
        turns=limit * len(left),
        prompt_tokens=len(left) * (limit * head + growth * limit * (limit - 1) / 2) if asked else 0.0,
        completion_tokens=limit * len(left) * reply if asked else 0.0,
        first_task=tasks[0].id,
        messages=messages,
    )


def _first_prompt(config: RunConfig, chosen: RunTasks, task: Task, data: Path | None) -> list[Message]:
    """Raises UserError where the environment does not start."""
    spec, surface = chosen.specs[task.family], chosen.surfaces[task.family]
    environment = spec.make(data)
    try:
        observation, _ = environment.reset(options={"task": task})
        agent = config.agent.chosen.make()
        goal, first = surface.names(environment.goal), surface.observation(observation)
        valid = (
            tuple(map(surface.action, environment.valid_actions())) if agent.wants_valid_actions() else None
        )
        prompt = surface.prompt(chosen.prompts[task.family].for_kind(task.kind))
        limit = chosen.turn_limits[task.family]
        start = EpisodeStart(
            task.id, task.family, task.kind, goal, first, limit, prompt, surface.perturbed, valid
        )
        agent.start(start)
        return agent.request().messages
    except OSError as error:
        raise UserError(f"{spec.title} does not start: {error}; see: evalharness doctor") from None
    finally:
        environment.close()


_KINDS = 6
"""At most so many kinds of a family are named."""


def print_plan(console: Console, plan: Plan, titles: Mapping[str, str]) -> None:
    for family in plan.families:
        if not family.messages:
            continue
        console.print(
            f"=== {titles.get(family.family, family.family)}: the first prompt, of {family.first_task}",
            style="bold",
        )
        for message in family.messages:
            console.print(f"--- {message['role']}", style="dim")
            console.print(str(message["content"]), soft_wrap=True)
        console.print()
    table = plain_table("family", "tasks", "episodes", "to play", words("kinds"), gap=2)
    for family in plan.families:
        counts = (family.tasks, family.episodes, family.left)
        table.add_row(titles.get(family.family, family.family), *map(str, counts), _kinds(family))
    console.print(table)
    for line in ["", f"server: {plan.server}", folder_line(plan), estimate_line(plan)]:
        console.print(line, soft_wrap=True)


def _kinds(family: FamilyPlan) -> str:
    names = [
        f"{kind} {count}"
        for kind, count in sorted(family.kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    more = f" and {len(names) - _KINDS} more" if len(names) > _KINDS else ""
    return ", ".join(names[:_KINDS]) + more


def folder_line(plan: Plan) -> str:
    left, episodes = (sum(getattr(family, name) for family in plan.families) for name in ("left", "episodes"))
    if not plan.folder_is_certain:
        return f"run folder: {plan.folder}, or another one: that depends on what the server says of its model"
    if plan.refused:
        return (
            f"run folder: {plan.folder} holds another run, and this one would be refused:\n  "
            + "\n  ".join(plan.refused)
        )
    if plan.there:
        return f"run folder: {plan.folder} is there; {episodes - left} of {episodes} episodes finished, {left} to play"
    return f"run folder: {plan.folder}, new"


def estimate_line(*plans: Plan) -> str:
    """Of all of them together."""
    families = [family for plan in plans for family in plan.families]
    turns, prompt, completion = (
        sum(getattr(family, name) for family in families)
        for name in ("turns", "prompt_tokens", "completion_tokens")
    )
    if not turns:
        return "nothing is left to play"
    if not prompt:
        return f"estimate: at most {turns:,.0f} turns; no tokens"
    costs = [plan.cost for plan in plans if plan.cost is not None]
    cost = f", cost {sum(costs):.4g}" if costs else ""
    return (
        f"estimate (every episode to its turn limit, 4 characters a token): {turns:,.0f} turns, "
        f"{_about(prompt)} prompt and {_about(completion)} new tokens{cost}"
    )


def _about(tokens: float) -> str:
    """`1.25 M`, `12,300`, `840`: three figures."""
    if tokens >= 999_500:
        return f"{tokens / 1e6:.2f} M"
    return f"{float(f'{tokens:.3g}'):,.0f}"
