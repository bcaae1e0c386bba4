"""`evalharness probe`: one reply to each prefix, checked by the simulators: is it another action, does the world take
it, can the task still be solved? In one folder that can be continued."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.machine import usable_cores
from evalharness.base.paths import folder_name
from evalharness.base.reading import read_object
from evalharness.config import PolicyConfig
from evalharness.envs import specs
from evalharness.envs.base import MAX_TURNS, Task, teaching_of
from evalharness.models.asking import ATTEMPTS, Answer, Outcome, asked_into, refuse_scripted
from evalharness.models.connections import sampling_identity
from evalharness.models.endpoint import TURN_FORM
from evalharness.models.event_loop import run_to_end
from evalharness.models.opened import Prepared
from evalharness.models.resolve import prepare
from evalharness.models.work import Watch, WorkProgress
from evalharness.play.workers.pool import EnvironmentPool
from evalharness.play.workers.process import despite_others
from evalharness.protocol import react
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message
from evalharness.records.answers import AnswerFolder, make_manifest
from evalharness.records.files import ERRORS, SUMMARY
from evalharness.records.identity import digest
from evalharness.records.lines import read_lines
from evalharness.records.store import write_atomically
from evalharness.results.behaviour.turns import plain
from evalharness.stats.intervals import wilson
from evalharness.training.datasets.overlap import PlayedTasks
from evalharness.training.grounded.draft import NoTrajectoryError, Stage
from evalharness.training.grounded.making import EPISODES_PER_WORKER
from evalharness.training.probe import KIND
from evalharness.training.probe.prefixes import Prefix

REPLIES = "replies.jsonl"
FIGURES = ("another", "valid", "solvable")
"""Fields of a Recovery that the table counts."""


@dataclass(frozen=True)
class Recovery:
    """Of one reply."""

    action: str | None
    """None: a format error."""
    another: bool = False
    """The action is none of the errors just made."""
    valid: bool = False
    """The world takes it."""
    solvable: bool = False
    """It is valid, another one, and what follows of the plan, or the family's agent without privileged information,
    solves the task after it. False where neither does: that proves nothing about other ways."""


@dataclass(frozen=True)
class RecoveryCheck:
    """The simulator, at one prefix."""

    stage: Stage
    prefix: Prefix

    async def of(self, action: str | None) -> Recovery:
        """Raises UserError, InfrastructureError."""
        if action is None:
            return Recovery(None)
        another = plain(action) not in map(plain, self.prefix.errors)
        await self.begin()
        _, _, info = await self.stage.step(action)
        if not another or not info["valid"]:
            return Recovery(action, another, info["valid"])
        solved = info["success"] or await self._by_plan(action) or await self._by_agent(action)
        return Recovery(action, another, True, solved)

    async def begin(self) -> None:
        """Play the prefix. Raises UserError where the world says something else."""
        _, observation, _ = await self.stage.environment.reset(self.stage.task)
        for action in self.prefix.said:
            observation, _, _ = await self.stage.step(action)
        if not self.prefix.messages[-1]["content"].endswith(observation):
            raise UserError(
                f"{self.prefix.key}: the world answers otherwise than in the prefix (made in other words, with "
                "--perturb, or by an earlier version?); make prefixes anew with: evalharness refine grounded"
            )

    async def _by_plan(self, action: str) -> bool:
        """The rest of the plan from some step on; first from where the prefix stands."""
        here = len(self.prefix.said) - len(self.prefix.errors)
        plan = self.prefix.plan
        orders = [here, here + 1, *range(here - 1, -1, -1)]
        for first in orders:
            if first < len(plan) and await self._solves([action, *plan[first:]]):
                return True
        return False

    async def _solves(self, actions: Sequence[str]) -> bool:
        await self.begin()
        for action in actions:
            _, terminated, info = await self.stage.step(action)
            if terminated or info["success"]:
                return bool(info["success"])
        return False

    async def _by_agent(self, action: str) -> bool:
        seeker = self.stage.world.seeker(self.stage.task)
        if seeker is None:
            return False
        _, before, _ = await self.stage.environment.reset(self.stage.task)
        await self.stage.decided(seeker, before)
        for said in (*self.prefix.said, action):
            after, _, info = await self.stage.step(said)
            if self.stage.showed(after, info):
                seeker.saw(said, before, after, tuple(info["subgoals_completed"]))
                before = after
        try:
            await self.stage.continued(seeker, before, MAX_TURNS, "")
        except NoTrajectoryError:
            return False
        return True


class ProbeFolder(AnswerFolder):
    """After `resume`, `verdicts` and `floor` hold what is there, by the prefix's key."""

    lines = (REPLIES, ERRORS)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.verdicts: dict[str, Recovery] = {}
        self.floor: dict[str, Recovery] = {}

    def load(self) -> None:
        for _ in read_lines(self.folder / REPLIES, "its prefix is asked anew", self._take):
            pass

    def _take(self, raw: bytes) -> None:
        line = read_object(raw)
        key = str(line["key"])
        self.verdicts[key], self.floor[key] = Recovery(**line["verdict"]), Recovery(**line["floor"])

    def add(self, prefix: Prefix, answer: Answer, verdict: Recovery, floor: Recovery) -> None:
        self.append_line(
            REPLIES,
            {
                "key": prefix.key,
                "family": prefix.family,
                "task": prefix.task,
                "error": prefix.error,
                "verdict": asdict(verdict),
                "floor": asdict(floor),
                **answer.to_json(),
            },
        )
        self.verdicts[prefix.key], self.floor[prefix.key] = verdict, floor


@dataclass(frozen=True)
class Probe:
    """The command's options."""

    model: PolicyConfig
    prefixes: Sequence[Prefix]
    source: str
    """Hash of the data set that the prefixes are of."""
    data: Path | None = None
    output: Path | None = None
    attempts: int = ATTEMPTS


def run_probe(what: Probe, *, watch: Watch = nullcontext) -> Outcome:
    """Ask and check, or go on with that.

    Raises UserError for what the user can fix; infrastructure failures are recorded and named in what is returned.
    """
    refuse_scripted(what.model, "--model")
    tasks = _tasks(what)
    progress = WorkProgress("prefixes", len(what.prefixes))
    with watch(progress):
        prepared = prepare(what.model, {}, progress.set_status)
        identity = {
            "kind": KIND,
            "prefixes": {
                "sha256": what.source,
                "count": len(what.prefixes),
                "chosen": digest({"keys": [prefix.key for prefix in what.prefixes]})[:16],
            },
            "sampling": sampling_identity(what.model) | {"vllm_args": what.model.vllm_args},
            "model": dict(prepared.identity),
        }
        folder = what.output or _folder(what, identity)
        with ProbeFolder(folder) as store:
            store.resume(make_manifest(identity, what.model.display_name))
            progress.finished = len(store.verdicts)
            left = [prefix for prefix in what.prefixes if prefix.key not in store.verdicts]
            if left:
                run_to_end(_ask(what, prepared, store, tasks, left, progress))
            summary = summarize(what.prefixes, store.verdicts, store.floor)
            write_atomically(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
            return Outcome(folder, summary, progress.stopped)


def _folder(what: Probe, identity: Mapping[str, Any]) -> Path:
    name = folder_name(what.model.display_name, "model")
    return Path("results") / f"probe-{name}-{digest(identity)[:8]}"


def _tasks(what: Probe) -> dict[str, Task]:
    """Prefix -> task. Raises UserError for a prefix of another version of its suite."""
    known = PlayedTasks(what.data)
    found = {}
    for prefix in what.prefixes:
        suite = prefix.task_id.split("/")[1]
        task = known.find(prefix.family, suite, prefix.suite_seed, prefix.task_hash)
        if task is None:
            raise UserError(
                f"{prefix.key}: its task is not in suite {suite} of seed {prefix.suite_seed} as it is made today; "
                "make the prefixes anew with: evalharness refine grounded"
            )
        found[prefix.key] = task
    return found


@dataclass
class _Simulators:
    """A pool a family."""

    data: Path | None
    pools: dict[str, EnvironmentPool] = field(default_factory=dict)

    async def recoveries(self, prefix: Prefix, task: Task, action: str | None) -> tuple[Recovery, Recovery]:
        """Of the action, and of a random valid action. Raises UserError, InfrastructureError."""
        spec = specs()[prefix.family]
        if spec.family not in self.pools:
            self.pools[spec.family] = EnvironmentPool(
                spec, self.data, usable_cores(), episodes_per_worker=EPISODES_PER_WORKER
            )
        pool = self.pools[spec.family]

        async def once() -> tuple[Recovery, Recovery]:
            async with pool.environment() as environment:
                stage = Stage(task, environment, teaching_of(spec), PlayedSurface(spec), "", MAX_TURNS)
                check = RecoveryCheck(stage, prefix)
                await check.begin()
                valid = await environment.valid_actions()
                floor = Random(f"probe/{prefix.key}").choice(valid) if valid else None
                return await check.of(action), await check.of(floor)

        return await despite_others(once)

    async def aclose(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self.pools.values()))


async def _ask(
    what: Probe,
    prepared: Prepared,
    store: ProbeFolder,
    tasks: Mapping[str, Task],
    prefixes: Sequence[Prefix],
    progress: WorkProgress,
) -> None:
    simulators = _Simulators(what.data)
    asking = asked_into(store, prepared, TURN_FORM, progress, what.attempts, what.model.concurrency)
    async with aclosing(simulators), asking as model:

        async def one(prefix: Prefix) -> None:
            messages: list[Message] = list(prefix.messages)
            answer = await model.answer(prefix.key, messages, number=len(prefix.said) + 1)
            action = None if answer.refusal else react.parse(answer.reply).action
            store.add(prefix, answer, *await simulators.recoveries(prefix, tasks[prefix.key], action))
            progress.finish()

        model.answered_before = bool(store.verdicts)
        store.note_start(policy=dict(model.facts))
        await model.run({prefix.key: partial(one, prefix) for prefix in prefixes})


def summarize(
    prefixes: Sequence[Prefix], verdicts: Mapping[str, Recovery], floor: Mapping[str, Recovery]
) -> dict[str, Any]:
    """Counts and rates with Wilson's intervals, by family and over all; `left`: prefixes without a reply."""
    rows: dict[str, Any] = {}
    for name in [*sorted({prefix.family for prefix in prefixes}), "all"]:
        keys = [p.key for p in prefixes if name in ("all", p.family) and p.key in verdicts]
        row: dict[str, Any] = {"n": len(keys), "format_errors": sum(verdicts[k].action is None for k in keys)}
        for figure in FIGURES if keys else ():
            count = sum(getattr(verdicts[key], figure) for key in keys)
            row[figure] = {
                "count": count,
                "rate": count / len(keys),
                "ci95": list(wilson(count, len(keys))),
                "floor": sum(getattr(floor[key], figure) for key in keys) / len(keys),
            }
        rows[name] = row
    return {"prefixes": len(prefixes), "left": sum(p.key not in verdicts for p in prefixes), "families": rows}
