"""`--dry-run`: estimate what a run would play, start and write, without writing anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from evalharness.base.terminal import plain_table
from evalharness.config import RunConfig
from evalharness.models.resolve import prepare
from evalharness.models.served import NoAnswerError
from evalharness.models.serving.find import ServerNotFound
from evalharness.records.identity import changes
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import find_manifest, read_episodes
from evalharness.runs.evaluation import RunTasks, choose
from evalharness.runs.resume import identity_of_fewer_tasks, jobs_left
from evalharness.suites.selection import load_existing_tasks

_CHARACTERS_A_TOKEN = 4
_GROWTH, _REPLY = 120.0, 60.0
"""Assumed tokens by which a turn lengthens the conversation, and assumed tokens of a reply."""


@dataclass(frozen=True)
class FamilyEstimate:
    family: str
    tasks: int
    episodes: int
    left: int
    turns: float
    """Turns of the remaining episodes if each reaches its turn limit."""
    prompt_tokens: float
    completion_tokens: float


@dataclass(frozen=True)
class RunEstimate:
    families: Sequence[FamilyEstimate]
    folder: str
    state: str
    """Whether the run is new or would be continued, or why the folder's run cannot be continued."""
    refused: bool
    server: str
    """The command that would start vLLM, or the server that would be asked."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def dry_run(config: RunConfig, *, data: Path | None, on_status: Callable[[str], None]) -> RunEstimate:
    """Return the estimate. Raises UserError if the run would be refused, or if its open suite has not been generated.
    If a server does not answer or vLLM is missing, the estimate says so."""
    chosen = choose(config, data, load_existing_tasks)
    try:
        prepared = prepare(
            config.policy, chosen.specs, on_status, agent=config.agent, outside=config.outside,
        )  # fmt: skip
        server = prepared.server() or "none: a script plays"
    except (NoAnswerError, ServerNotFound) as error:  # for example on a login node of a cluster
        prepared, server = None, str(error)
    folder = config.folder(prepared.address if prepared else None)
    earlier = find_manifest(folder)
    done = {(e.task_id, e.sample) for e in read_episodes(folder)} if earlier else set()
    families = [_estimate(config, chosen, family, done) for family in chosen.tasks]
    state, refused = f"new; {_count(families)}", False
    if prepared is None and config.policy.is_endpoint and config.execution.output is None:
        state = "or another one: that depends on what the server says of its model"
    elif earlier and prepared:
        manifest = make_manifest(
            config, chosen.tasks, chosen.specs, chosen.prompt_hashes, prepared.identity, data
        )
        fewer = identity_of_fewer_tasks(config, earlier, chosen.specs, chosen.tasks, manifest, data)
        identity = earlier.identity.to_json()
        differing = changes(identity, manifest.identity.to_json())
        refused = bool(differing and (fewer is None or changes(identity, fewer)))
        state = f"continued; {_count(families)}"
        if refused:
            state = "holds another run, and this one would be refused:\n  " + "\n  ".join(differing)
    return RunEstimate(families, str(folder), state, refused, server)


def _estimate(config: RunConfig, chosen: RunTasks, family: str, done: set[tuple[str, int]]) -> FamilyEstimate:
    tasks = chosen.tasks[family]
    left = len(jobs_left({family: tasks}, config.selection.samples, chosen.turn_limits, done))
    limit, asked = chosen.turn_limits[family], not config.policy.is_scripted
    surface = chosen.surfaces[family]
    prompt = surface.prompt(chosen.prompts[family].for_kind(tasks[0].kind))
    messages = prompt.messages(surface.perturbed, "", "", max_turns=limit) if asked else []
    head = sum(len(str(message["content"])) for message in messages) / _CHARACTERS_A_TOKEN
    return FamilyEstimate(
        family=family,
        tasks=len(tasks),
        episodes=len(tasks) * config.selection.samples,
        left=left,
        turns=limit * left,
        prompt_tokens=left * (limit * head + _GROWTH * limit * (limit - 1) / 2) if asked else 0.0,
        completion_tokens=limit * left * min(_REPLY, float(config.policy.max_tokens)) if asked else 0.0,
    )


def _sum(families: Sequence[FamilyEstimate], name: str) -> float:
    return float(sum(getattr(family, name) for family in families))


def _count(families: Sequence[FamilyEstimate]) -> str:
    left, episodes = (int(_sum(families, name)) for name in ("left", "episodes"))
    return f"{episodes - left} of {episodes} episodes finished, {left} to play"


def print_estimate(console: Console, run: RunEstimate, titles: Mapping[str, str]) -> None:
    table = plain_table("family", "tasks", "episodes", "to play", gap=2)
    for family in run.families:
        counts = map(str, (family.tasks, family.episodes, family.left))
        table.add_row(titles.get(family.family, family.family), *counts)
    console.print(table)
    prompts = f"prompts: evalharness data prompts show {run.families[0].family}"
    for line in (f"server: {run.server}", folder_line(run), prompts, estimate_line(run)):
        console.print(line, soft_wrap=True)


def folder_line(run: RunEstimate) -> str:
    return f"run folder: {run.folder}, {run.state}"


def estimate_line(*runs: RunEstimate) -> str:
    families = [family for run in runs for family in run.families]
    turns, prompt, completion = (
        _sum(families, name) for name in ("turns", "prompt_tokens", "completion_tokens")
    )
    if not turns:
        return "nothing is left to play"
    if not prompt:
        return f"estimate: at most {turns:,.0f} turns; no tokens"
    return (
        f"estimate (every episode to its turn limit, 4 characters a token): {turns:,.0f} turns, "
        f"{prompt / 1e6:.2f} M prompt and {completion / 1e6:.2f} M new tokens"
    )
