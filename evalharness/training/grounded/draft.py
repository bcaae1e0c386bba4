"""A trajectory with errors, tried out in the world: the plan played clean, then once more with errors put in.

The world confirms every error: it either refuses the action, or accepts it without progress, and all later turns of
the plan have the same answers, validity and progress as without the action.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from evalharness.envs.base import EnvSpec, Task
from evalharness.models.base import Environment
from evalharness.protocol.perturb import PlayedSurface
from evalharness.training.grounded.injected_errors import KINDS, InjectedError, Kind, possible_errors
from evalharness.training.teachers.scene import Scene, Step
from evalharness.training.teachers.teaching import Decision, Seeker, Teaching

_ATTEMPTS = 14
"""Times that a trajectory is started over because the world did not take an error for one."""
_PLAIN_FROM = 9
"""From this attempt on errors are in names and verbs alone, which hardly ever fail to be one."""


class NoTrajectoryError(Exception):
    """No trajectory can be made of this task; the message is a short reason that is counted."""


@dataclass(frozen=True)
class ErrorPlan:
    """How many errors, where and of which kinds."""

    runs: tuple[int, int] = (1, 3)
    """Runs of errors in a trajectory, least and most."""
    lengths: tuple[float, ...] = (0.62, 0.24, 0.09, 0.05)
    """Shares of runs of one, two, three and four errors."""
    kinds: tuple[Kind, ...] = KINDS


@dataclass(frozen=True)
class DraftedTurn:
    """One turn of a trajectory: the plan's, an error, or the taking back of one."""

    scene: Scene
    said: str
    """The action in the surface's words."""
    valid: bool
    progress: float
    injected: InjectedError | None = None
    """The error that this turn is."""
    after: tuple[InjectedError, ...] = ()
    """The run of errors that this turn follows: it is the first right one."""
    takes_back: bool = False

    @classmethod
    def of(cls, scene: Scene, said: str, info: Mapping[str, Any], **marks: Any) -> DraftedTurn:
        return cls(scene, said, info["valid"], info["progress"], **marks)


@dataclass(frozen=True)
class Clean:
    """A task played without errors."""

    goal: str
    first_observation: str
    steps: tuple[Step, ...]


def step_of(decision: Decision, observation: str, info: Mapping[str, Any]) -> Step:
    """A player's decision with what the world made of it."""
    return Step(
        decision.action,
        observation,
        info["progress"],
        info["valid"],
        tuple(info["subgoals_completed"]),
        decision.rule,
        decision.thought,
    )


@dataclass
class Stage:
    """A task, the environment it is played in, and what is known of the family."""

    spec: EnvSpec
    task: Task
    environment: Environment
    world: Teaching
    surface: PlayedSurface
    rules: str
    """System text and instruction, in the world's own words."""
    max_turns: int

    def scene(self, clean: Clean, at: int) -> Scene:
        surface = self.surface.canonical
        return Scene(self.task, clean.goal, clean.first_observation, self.rules, clean.steps, at, surface)

    async def step(self, said: str) -> tuple[str, bool, dict[str, Any]]:
        return await self.environment.step(self.surface.to_world(said))

    def showed(self, observation: str, info: Mapping[str, Any]) -> bool:
        """Whether a player of the task has to know of this step: not of one that was refused or changed nothing, nor of
        a question for the valid actions."""
        return bool(info["valid"] and not info.get("no_effect") and not self.surface.is_listing(observation))

    async def decided(self, seeker: Seeker, observation: str) -> Decision | None:
        valid = await self.environment.valid_actions() if seeker.reads_valid else []
        return seeker.next(observation, valid)

    async def sought(self, seeker: Seeker) -> Clean:
        """The task played by an agent without privileged information. Raises NoTrajectoryError where it does not get
        there."""
        goal, first, _ = await self.environment.reset(self.task)
        steps = await self.continued(seeker, first, self.max_turns, "its player does not get there")
        return Clean(goal, first, tuple(steps))

    async def continued(self, seeker: Seeker, before: str, most: int, lost: str) -> list[Step]:
        """The agent's steps from where the last observation was `before`, to success. Raises NoTrajectoryError, which
        says `lost`."""
        steps: list[Step] = []
        while True:
            decision = await self.decided(seeker, before)
            if decision is None or len(steps) == most:
                raise NoTrajectoryError(lost)
            after, terminated, info = await self.step(self.surface.action(decision.action))
            if terminated and not info["success"]:
                raise NoTrajectoryError(lost)
            steps.append(step_of(decision, after, info))
            if info["success"]:
                return steps
            seeker.saw(decision.action, before, after, steps[-1].completed)
            before = after

    async def clean(self) -> Clean:
        """Play the plan. Where coming to a place does not show its things, looking around is added to it. Actions that
        the world refuses are left out if the rest succeeds without them; if time matters, it may not."""
        goal, first, _ = await self.environment.reset(self.task)
        plan = await self.environment.oracle()
        if not plan:
            raise NoTrajectoryError("no plan is known")
        steps, info = await self._played(plan, goal, first)
        if not info["success"]:
            raise NoTrajectoryError("the plan does not succeed")
        if refused := self._refused(steps):
            await self.environment.reset(self.task)
            rest = [step.action for at, step in enumerate(steps) if at not in refused]
            shorter, info = await self._played(rest, goal, first)
            steps = shorter if info["success"] and not self._refused(shorter) else steps
        if len(steps) > self.max_turns:
            raise NoTrajectoryError("the plan is too long")
        return Clean(goal, first, tuple(steps))

    def _refused(self, steps: Sequence[Step]) -> set[int]:
        return {at for at, step in enumerate(steps) if self.world.refused(step.valid, step.observation)}

    async def _played(
        self, plan: Sequence[str], goal: str, first: str
    ) -> tuple[list[Step], Mapping[str, Any]]:
        steps: list[Step] = []
        info: Mapping[str, Any] = {}
        for action in plan:
            queue = [action]
            if self._must_look(action, Clean(goal, first, (*steps, Step(action, "", 0.0, True)))):
                queue.insert(0, self.world.look)
            for text in queue:
                observation, _, info = await self.step(self.surface.action(text))
                steps.append(step_of(Decision(text, ""), observation, info))
        return steps, info

    def _must_look(self, action: str, so_far: Clean) -> bool:
        if not self.world.look or len(so_far.steps) < 2:
            return False
        scene = self.scene(so_far, len(so_far.steps) - 1)
        before = scene.parse(so_far.steps[-2].action)
        if before is None or before.name not in self.world.moves or before.arguments == {}:
            return False
        return scene.next is not None and not scene.knows(*scene.next.arguments.values())

    async def with_errors(self, clean: Clean, errors: ErrorPlan, key: str) -> list[DraftedTurn]:
        """The plan with errors. The same key gives the same trajectory. Raises NoTrajectoryError."""
        banned: set[tuple[int, str]] = set()
        for attempt in range(_ATTEMPTS):
            kinds = (
                errors.kinds if attempt < _PLAIN_FROM else tuple(k for k in errors.kinds if k == "parameter")
            )
            trial = _Trial(self, clean, errors, kinds or errors.kinds, Random(key), banned)
            try:
                return await trial.play()
            except _NotAnErrorError as fault:
                banned.update(fault.to_ban)
        raise NoTrajectoryError("no error stays without effect")


class _NotAnErrorError(Exception):
    """The world took an error for something else; these must not be tried again."""

    def __init__(self, to_ban: Sequence[tuple[int, str]]) -> None:
        super().__init__()
        self.to_ban = to_ban


@dataclass
class _Trial:
    """One way through the plan with errors."""

    stage: Stage
    clean: Clean
    errors: ErrorPlan
    kinds: tuple[Kind, ...]
    rng: Random
    banned: set[tuple[int, str]]

    def _runs(self) -> dict[int, int]:
        """Step of the plan -> length of the run of errors before it, within the turns that are left."""
        steps, spare = len(self.clean.steps), self.stage.max_turns - len(self.clean.steps)
        least, most = self.errors.runs
        count = min(self.rng.randint(least, most), steps, spare // 2)
        if count < least:
            raise NoTrajectoryError("no turns are left for errors")
        runs: dict[int, int] = {}
        for at in sorted(self.rng.sample(range(steps), count)):
            length = self.rng.choices(range(1, len(self.errors.lengths) + 1), self.errors.lengths)[0]
            # One turn for each run still to come, and one to take the last error back.
            length = min(length, spare - 2 * (count - len(runs)) + 1)
            runs[at] = length
            spare -= length + 1
        return runs

    async def play(self) -> list[DraftedTurn]:
        await self.stage.environment.reset(self.stage.task)
        runs = self._runs()
        turns: list[DraftedTurn] = []
        for at, step in enumerate(self.clean.steps):
            scene = self.stage.scene(self.clean, at)
            made = await self._run_of_errors(scene, runs[at]) if at in runs else []
            turns += made
            said = self.stage.surface.action(step.action)
            observation, terminated, info = await self.stage.step(said)
            expected = at == len(self.clean.steps) - 1
            # The last answer is in no conversation, and some games count the turns in it.
            same = observation == step.observation or self.stage.world.clock or expected
            if not (
                same
                and info["valid"] == step.valid
                and abs(info["progress"] - step.progress) < 1e-9
                and terminated == expected
            ):
                raise _NotAnErrorError(self._suspects(turns))
            erred = made and not made[-1].takes_back
            after = tuple(turn.injected for turn in made if turn.injected is not None) if erred else ()
            turns.append(DraftedTurn.of(scene, said, info, after=after))
        if not info["success"]:
            raise _NotAnErrorError(self._suspects(turns))
        return turns

    def _suspects(self, turns: Sequence[DraftedTurn]) -> list[tuple[int, str]]:
        """The last error that may have changed something; any error at all where none should have."""
        made = [turn for turn in turns if turn.injected is not None]
        moved = [turn for turn in made if turn.injected is not None and turn.injected.kind == "logic"]
        if not made:
            raise NoTrajectoryError("the plan does not repeat")
        return [
            (turn.scene.at, turn.injected.action)
            for turn in (moved or made)[-1:]
            if turn.injected is not None
        ]

    async def _run_of_errors(self, scene: Scene, length: int) -> list[DraftedTurn]:
        stage, turns, run = self.stage, list[DraftedTurn](), list[InjectedError]()
        before = self.clean.steps[scene.at - 1].progress if scene.at else 0.0
        valid = await stage.environment.valid_actions() if stage.world.lists_valid else []
        candidates = possible_errors(scene, stage.world, self.rng, stage.surface, valid, self.kinds)
        for injected in candidates:
            if len(run) == length:
                break
            if (scene.at, injected.action) in self.banned or injected.action in {
                other.action for other in run
            }:
                continue
            if injected.leads_away and len(run) < length - 1:
                continue
            said = injected.action if injected.as_said else stage.surface.action(injected.action)
            observation, terminated, info = await stage.step(said)
            refused = stage.world.refused(info["valid"], observation)
            useless = abs(info["progress"] - before) < 1e-9 and not terminated
            good_after_all = injected.unless and re.search(rf"\b{re.escape(injected.unless)}\b", observation)
            stayed = injected.leads_away and info.get("no_effect")
            if not useless or good_after_all or stayed or refused == (injected.kind == "logic"):
                raise _NotAnErrorError([(scene.at, injected.action)])
            run.append(injected)
            turns.append(DraftedTurn.of(scene, said, info, injected=injected))
            if injected.back is not None:
                turns.append(await self._taken_back(scene, tuple(run), injected, before, valid))
            if injected.leads_away:
                break
        return turns

    async def _taken_back(
        self,
        scene: Scene,
        run: tuple[InjectedError, ...],
        injected: InjectedError,
        before: float,
        valid: Sequence[str],
    ) -> DraftedTurn:
        assert injected.back is not None
        said = self.stage.surface.action(injected.back)
        observation, terminated, info = await self.stage.step(said)
        refused = self.stage.world.refused(info["valid"], observation) or info.get("no_effect")
        as_before = abs(info["progress"] - before) < 1e-9 and not terminated and not refused
        if as_before and self.stage.world.lists_valid:
            as_before = await self.stage.environment.valid_actions() == list(valid)
        if not as_before:
            raise _NotAnErrorError([(scene.at, injected.action)])
        return DraftedTurn.of(scene, said, info, after=run, takes_back=True)
