"""Play ScienceWorld by the rules of AgentBoard, of the open suite, or of the simulator itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalharness.envs.base import InvalidTaskError, Task, TextEnv, task_of
from evalharness.envs.sciworld.actions import CHECK, was_carried_out
from evalharness.envs.sciworld.kinds import EXPECTED, UNWRAPPED
from evalharness.envs.sciworld.open import oracle
from evalharness.envs.sciworld.progress import LabelProgress, score_progress
from evalharness.envs.sciworld.simulator import Simulator, SimulatorFault, first_observation, start_score

_SAME_SCORE = 1e-9
_RESET = "reset task"
"""An action that resets the simulator's scorer. An agent may use it, as in AgentBoard, but no list of valid actions has
it."""


class ScienceWorldEnv(TextEnv):
    """A school with ten rooms and an outside, full of devices, substances and living things.

    Observations are equal to those of `scienceworld.ScienceWorldEnv.step`; see `docs/environments/sciworld.md`. Any
    method raises `SimulatorDiedError` if the Java process has ended; the next `reset` starts another process.
    """

    def __init__(self, data: Path | None = None) -> None:
        super().__init__(data=data)
        self._simulator = Simulator()
        self._labels: LabelProgress | None = None
        self._progress = 0.0
        self._at_start = 0.0
        self._solved = False

    def warm(self) -> None:
        self._simulator.start()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = task_of(options)
        load_world(self._simulator, task)
        self._task = task
        self._labels = LabelProgress(task.subgoals) if task.subgoals else None
        self._progress = 0.0
        self._solved = False
        if task.suite in EXPECTED:
            return self._describe_start(task), self._info(valid=True)
        observation = first_observation(self._simulator)
        self._at_start = 0.0 if self._labels else _check_start(self._simulator, task)
        return observation, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        task = self.playing(self._task)
        if task.suite in EXPECTED:
            return self._unwrapped_step(task, action)
        before = self._progress
        text = action.strip()
        if text == CHECK:
            # As in AgentBoard, the help action takes no time in the simulator and cannot reach a subgoal.
            return self._help(), 0.0, self._is_over(False), False, self._info(valid=True)
        try:
            observation = self._simulator.step(text)
        except SimulatorFault:
            observation = "The world cannot do that."
            return observation, 0.0, self._is_over(False), False, self._info(valid=False)
        score, finished = self._simulator.verdict()
        self._solved = self._solved or (finished and score >= 1.0)
        completed: tuple[int, ...] = ()
        if self._labels is None:
            self._progress = score_progress(score, self._at_start)
        else:
            completed = self._labels.see(observation)
            self._progress = self._labels.rate
        info = self._info(valid=was_carried_out(observation), completed=completed)
        return observation, self._progress - before, self._is_over(score < 0), False, info

    def _describe_start(self, task: Task) -> str:
        """Return the first observation for a suite in `EXPECTED`: the description of the room, and in the suite
        `unwrapped` also the task, as in TALES."""
        room = self._simulator.step("look around")
        if task.suite == UNWRAPPED:
            return f"Task Description:\n{self._simulator.task_description()}\n\n{room}"
        return room

    def _unwrapped_step(self, task: Task, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play a turn of a suite in `EXPECTED`: every text is an action, and progress is the highest score so far."""
        before = self._progress
        try:
            observation = self._simulator.step(action)
        except SimulatorFault:
            observation = "The world cannot do that."
        valid = was_carried_out(observation)
        score, finished = self._simulator.verdict()
        self._progress = max(
            before, round(100 * score) / 100
        )  # in whole percent, as in the package scienceworld
        self._solved = self._solved or score >= 1.0
        ended = finished or score < 0
        if ended and not self._solved and task.suite == UNWRAPPED:
            load_world(self._simulator, task)
            observation, ended = f"{observation}\n\n-= Restarting =-\n{self._describe_start(task)}", False
        return observation, self._progress - before, ended, False, self._info(valid=valid)

    @property
    def goal(self) -> str:
        task = self.playing(self._task)
        return task.goal or self._simulator.task_description()

    def valid_actions(self) -> list[str]:
        self.playing(self._task)
        return sorted(set(self._simulator.valid_actions()) - {_RESET})

    def oracle(self) -> list[str]:
        """Return a plan. An open task contains its plan. For a published task this takes a quarter of a second, or
        seconds to minutes if no plan is stored and the simulator's own solution must be shortened."""
        return [] if self.playing(self._task).suite in EXPECTED else self._find_plan(oracle.plan)

    def reference_plans(self) -> dict[str, list[str]]:
        """Return the oracle's plan and the simulator's own solution, which may miss subgoals of AgentBoard's labels."""
        return {"oracle": self.oracle(), "gold": self._find_plan(oracle.gold_path)}

    def _find_plan(self, planner: Callable[[Simulator, Task], list[str]]) -> list[str]:
        task = self.playing(self._task)
        # Plan in a second world of the same Java process, so that the running episode does not change.
        scratch = Simulator()
        try:
            return planner(scratch, task)
        finally:
            scratch.close()

    def close(self) -> None:
        self._simulator.close()

    def _help(self) -> str:
        templates = [template for template in self._simulator.templates() if "reset" not in template]
        return "Choose an action from these valid actions: " + ", ".join([*templates, CHECK])

    def _success(self) -> bool:
        return self._solved if self._labels is None else self._labels.success

    def _is_over(self, failed: bool) -> bool:
        """Return whether the episode is over. `failed`: a mistake has failed the task in the simulator. AgentBoard
        ignores this."""
        return self._success() or (failed and self._labels is None)

    def _info(self, *, valid: bool, completed: tuple[int, ...] = ()) -> dict[str, Any]:
        return self.info(
            progress=self._progress,
            success=self._success(),
            solved=self._solved,
            valid=valid,
            completed=completed,
        )


def load_world(simulator: Simulator, task: Task) -> None:
    """Load the task. Raise InvalidTaskError if the simulator has no such task."""
    try:
        simulator.begin(task)
    except (KeyError, TypeError, ValueError, SimulatorFault) as error:
        raise InvalidTaskError(f"{task.id} is not a ScienceWorld task: {error}") from error


def _check_start(simulator: Simulator, task: Task) -> float:
    """Return the simulator's score at the start of a task. Raise InvalidTaskError if an open task has stored another
    start score, because its progress would be wrong."""
    stored, measured = task.payload.get("start_score"), start_score(simulator)
    if task.suite != "open":
        return measured
    if not isinstance(stored, int | float) or abs(stored - measured) > _SAME_SCORE:
        raise InvalidTaskError(
            f"{task.id}: it was made with start score {stored}, but the simulator gives {measured}; "
            "was it made by another version?"
        )
    return measured
