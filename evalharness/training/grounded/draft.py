"""Play the oracle's plan, or a rule-based agent's actions, in the simulator; then play the same actions again with
injected errors.

The simulator must refuse an injected `parameter` or `place` error, and execute a `logic` error without progress. All
later turns must have the same observations, validity and progress as without errors.
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
from evalharness.training.grounded.injected_errors import KINDS, InjectedError, Kind, propose_errors
from evalharness.training.teachers.scene import Scene, Step
from evalharness.training.teachers.teaching import Decision, Seeker, Teaching

_ATTEMPTS = 14
"""Number of attempts at a trajectory. A new attempt begins if an injected action turns out to be no error."""
_PLAIN_FROM = 9
"""From this attempt on, inject only wrong names and verbs, because the simulator refuses these almost always."""


class NoTrajectoryError(Exception):
    """No trajectory can be made from the task. The message is a short reason, by which such failures are counted."""


@dataclass(frozen=True)
class ErrorPlan:
    """The number of error sequences in a trajectory, and the lengths of the sequences and kinds of errors."""

    runs: tuple[int, int] = (1, 3)
    """Least and most number of error sequences in a trajectory."""
    lengths: tuple[float, ...] = (0.62, 0.24, 0.09, 0.05)
    """Probabilities that an error sequence has one, two, three and four errors."""
    kinds: tuple[Kind, ...] = KINDS


@dataclass(frozen=True)
class DraftedTurn:
    """One turn of a trajectory: an action of the plan, an injected error, or an action that undoes an error."""

    scene: Scene
    wording: str
    """The action in the wording of the perturbation."""
    valid: bool
    progress: float
    injected: InjectedError | None = None
    """The error, if this turn is one."""
    after: tuple[InjectedError, ...] = ()
    """The preceding error sequence, if this is the first right turn after the sequence."""
    takes_back: bool = False

    @classmethod
    def of(cls, scene: Scene, wording: str, info: Mapping[str, Any], **marks: Any) -> DraftedTurn:
        return cls(scene, wording, info["valid"], info["progress"], **marks)


@dataclass(frozen=True)
class CleanPlay:
    """The goal, first observation and steps of a task that was played without errors."""

    goal: str
    first_observation: str
    steps: tuple[Step, ...]


def make_step(decision: Decision, observation: str, info: Mapping[str, Any]) -> Step:
    """Return the step that consists of a decision and the simulator's answer."""
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
    """Plays one task in an environment, with the texts and rules of the family's teacher."""

    spec: EnvSpec
    task: Task
    environment: Environment
    world: Teaching
    surface: PlayedSurface
    rules: str
    """System text and instruction of the prompt, in the environment's original wording."""
    max_turns: int

    def scene(self, clean: CleanPlay, at: int) -> Scene:
        surface = self.surface.canonical
        return Scene(self.task, clean.goal, clean.first_observation, self.rules, clean.steps, at, surface)

    async def step(self, wording: str) -> tuple[str, bool, dict[str, Any]]:
        return await self.environment.step(self.surface.to_world(wording))

    def has_effect(self, observation: str, info: Mapping[str, Any]) -> bool:
        """Return whether a step has an effect. False if the action was refused, changed nothing, or only listed the
        valid actions."""
        return bool(info["valid"] and not info.get("no_effect") and not self.surface.is_listing(observation))

    async def ask_seeker(self, seeker: Seeker, observation: str) -> Decision | None:
        valid = await self.environment.valid_actions() if seeker.reads_valid else []
        return seeker.next(observation, valid)

    async def play_seeker(self, seeker: Seeker) -> CleanPlay:
        """Play the task with an agent without privileged information. Raises NoTrajectoryError if the agent does not
        succeed."""
        goal, first, _ = await self.environment.reset(self.task)
        steps = await self.play_on(seeker, first, self.max_turns, "the teacher does not succeed")
        return CleanPlay(goal, first, tuple(steps))

    async def play_on(self, seeker: Seeker, before: str, most: int, lost: str) -> list[Step]:
        """Return the agent's steps from the observation `before` to success. If the agent fails, or needs more than
        `most` steps, raise NoTrajectoryError with the message `lost`."""
        steps: list[Step] = []
        while True:
            decision = await self.ask_seeker(seeker, before)
            if decision is None or len(steps) == most:
                raise NoTrajectoryError(lost)
            after, terminated, info = await self.step(self.surface.from_world(decision.action))
            if terminated and not info["success"]:
                raise NoTrajectoryError(lost)
            steps.append(make_step(decision, after, info))
            if info["success"]:
                return steps
            seeker.observe(decision.action, before, after, steps[-1].completed)
            before = after

    async def clean(self) -> CleanPlay:
        """Play the oracle's plan. Add an action that looks around if entering a place does not show its things. Leave
        out refused actions if the plan succeeds without them."""
        goal, first, _ = await self.environment.reset(self.task)
        plan = await self.environment.oracle()
        if not plan:
            raise NoTrajectoryError("no plan is known")
        steps, info = await self._play_actions(plan, goal, first)
        if not info["success"]:
            raise NoTrajectoryError("the plan does not succeed")
        if refused := self._find_refused(steps):
            await self.environment.reset(self.task)
            rest = [step.action for at, step in enumerate(steps) if at not in refused]
            shorter, info = await self._play_actions(rest, goal, first)
            steps = shorter if info["success"] and not self._find_refused(shorter) else steps
        if len(steps) > self.max_turns:
            raise NoTrajectoryError("the plan is too long")
        return CleanPlay(goal, first, tuple(steps))

    def _find_refused(self, steps: Sequence[Step]) -> set[int]:
        return {at for at, step in enumerate(steps) if self.world.refused(step.valid, step.observation)}

    async def _play_actions(
        self, plan: Sequence[str], goal: str, first: str
    ) -> tuple[list[Step], Mapping[str, Any]]:
        steps: list[Step] = []
        info: Mapping[str, Any] = {}
        for action in plan:
            queue = [action]
            if self._must_look(action, CleanPlay(goal, first, (*steps, Step(action, "", 0.0, True)))):
                queue.insert(0, self.world.look)
            for text in queue:
                observation, _, info = await self.step(self.surface.from_world(text))
                steps.append(make_step(Decision(text, ""), observation, info))
        return steps, info

    def _must_look(self, action: str, so_far: CleanPlay) -> bool:
        if not self.world.look or len(so_far.steps) < 2:
            return False
        scene = self.scene(so_far, len(so_far.steps) - 1)
        before = scene.parse(so_far.steps[-2].action)
        if before is None or before.name not in self.world.moves or before.arguments == {}:
            return False
        return scene.next is not None and not scene.knows(*scene.next.arguments.values())

    async def play_with_errors(self, clean: CleanPlay, errors: ErrorPlan, key: str) -> list[DraftedTurn]:
        """Play the plan with errors. The same key gives the same trajectory. Raises NoTrajectoryError."""
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
        raise NoTrajectoryError("no error leaves the state unchanged")


class _NotAnErrorError(Exception):
    """An injected action is no error, or it changed later turns. `to_ban` has (plan step, action) not to inject
    again."""

    def __init__(self, to_ban: Sequence[tuple[int, str]]) -> None:
        super().__init__()
        self.to_ban = to_ban


@dataclass
class _Trial:
    """One attempt to play the plan with errors."""

    stage: Stage
    clean: CleanPlay
    errors: ErrorPlan
    kinds: tuple[Kind, ...]
    rng: Random
    banned: set[tuple[int, str]]

    def _draw_runs(self) -> dict[int, int]:
        """Return plan step -> length of the error sequence before this step. All sequences together fit into
        `max_turns`."""
        steps, spare = len(self.clean.steps), self.stage.max_turns - len(self.clean.steps)
        least, most = self.errors.runs
        count = min(self.rng.randint(least, most), steps, spare // 2)
        if count < least:
            raise NoTrajectoryError("no turns are left for errors")
        runs: dict[int, int] = {}
        for at in sorted(self.rng.sample(range(steps), count)):
            length = self.rng.choices(range(1, len(self.errors.lengths) + 1), self.errors.lengths)[0]
            # Reserve two turns for each later sequence, and one turn to undo the last error of this sequence.
            length = min(length, spare - 2 * (count - len(runs)) + 1)
            runs[at] = length
            spare -= length + 1
        return runs

    async def play(self) -> list[DraftedTurn]:
        await self.stage.environment.reset(self.stage.task)
        runs = self._draw_runs()
        turns: list[DraftedTurn] = []
        for at, step in enumerate(self.clean.steps):
            scene = self.stage.scene(self.clean, at)
            made = await self._play_errors(scene, runs[at]) if at in runs else []
            turns += made
            wording = self.stage.surface.from_world(step.action)
            observation, terminated, info = await self.stage.step(wording)
            expected = at == len(self.clean.steps) - 1
            # Do not compare the last observation: it is not trained, and in some games it shows the number of turns.
            same = observation == step.observation or self.stage.world.clock or expected
            if not (
                same
                and info["valid"] == step.valid
                and abs(info["progress"] - step.progress) < 1e-9
                and terminated == expected
            ):
                raise _NotAnErrorError(self._find_suspects(turns))
            erred = made and not made[-1].takes_back
            after = tuple(turn.injected for turn in made if turn.injected is not None) if erred else ()
            turns.append(DraftedTurn.of(scene, wording, info, after=after))
        if not info["success"]:
            raise _NotAnErrorError(self._find_suspects(turns))
        return turns

    def _find_suspects(self, turns: Sequence[DraftedTurn]) -> list[tuple[int, str]]:
        """Return the error that most likely changed the state: the last `logic` error; the last error if no error is
        `logic`."""
        made = [turn for turn in turns if turn.injected is not None]
        moved = [turn for turn in made if turn.injected is not None and turn.injected.kind == "logic"]
        if not made:
            raise NoTrajectoryError("the plan gives another result when it is played again")
        return [
            (turn.scene.at, turn.injected.action)
            for turn in (moved or made)[-1:]
            if turn.injected is not None
        ]

    async def _play_errors(self, scene: Scene, length: int) -> list[DraftedTurn]:
        stage, turns, run = self.stage, list[DraftedTurn](), list[InjectedError]()
        before = self.clean.steps[scene.at - 1].progress if scene.at else 0.0
        valid = await stage.environment.valid_actions() if stage.world.lists_valid else []
        candidates = propose_errors(scene, stage.world, self.rng, stage.surface, valid, self.kinds)
        for injected in candidates:
            if len(run) == length:
                break
            if (scene.at, injected.action) in self.banned or injected.action in {
                other.action for other in run
            }:
                continue
            if injected.leads_away and len(run) < length - 1:
                continue
            wording = injected.action if injected.verbatim else stage.surface.from_world(injected.action)
            observation, terminated, info = await stage.step(wording)
            refused = stage.world.refused(info["valid"], observation)
            useless = abs(info["progress"] - before) < 1e-9 and not terminated
            good_after_all = injected.unless and re.search(rf"\b{re.escape(injected.unless)}\b", observation)
            stayed = injected.leads_away and info.get("no_effect")
            if not useless or good_after_all or stayed or refused == (injected.kind == "logic"):
                raise _NotAnErrorError([(scene.at, injected.action)])
            run.append(injected)
            turns.append(DraftedTurn.of(scene, wording, info, injected=injected))
            if injected.back is not None:
                turns.append(await self._take_back(scene, tuple(run), injected, before, valid))
            if injected.leads_away:
                break
        return turns

    async def _take_back(
        self,
        scene: Scene,
        run: tuple[InjectedError, ...],
        injected: InjectedError,
        before: float,
        valid: Sequence[str],
    ) -> DraftedTurn:
        assert injected.back is not None
        wording = self.stage.surface.from_world(injected.back)
        observation, terminated, info = await self.stage.step(wording)
        refused = self.stage.world.refused(info["valid"], observation) or info.get("no_effect")
        as_before = abs(info["progress"] - before) < 1e-9 and not terminated and not refused
        if as_before and self.stage.world.lists_valid:
            as_before = await self.stage.environment.valid_actions() == list(valid)
        if not as_before:
            raise _NotAnErrorError([(scene.at, injected.action)])
        return DraftedTurn.of(scene, wording, info, after=run, takes_back=True)
