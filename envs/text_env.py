"""The base class of every environment. It needs gymnasium, a third of a second of CPU; `evalharness.envs.base` imports
it on first use."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, TypeVar, Unpack

import gymnasium

from evalharness.envs.task import Info, NoEpisodeError, OptionalInfo, Task

T = TypeVar("T")


class AnyText(gymnasium.spaces.Space[str]):
    """The space of every string. `gymnasium.spaces.Text` is limited in length and alphabet; a model is not."""

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        return "look"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AnyText)

    @property
    def is_np_flattenable(self) -> bool:
        return False


class TextEnv(gymnasium.Env[str, str]):
    """A text world: an action is any string, an observation is a string.

    Every adapter promises:

    * any string is accepted as an action; an impossible action gives an ordinary observation;
    * the same task and actions give the same observations, independent of earlier episodes;
    * `reset(options={"task": task})` may be called any number of times on one instance; before the first call
      everything else raises `NoEpisodeError`;
    * `terminated` means that the task is solved or the world has ended; the caller limits the turns, so `truncated` is
      always false.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own attribute)

    def __init__(self, data: Path | None = None) -> None:
        """`data` is the user's data folder (it holds `agentboard/<family>/...`); None if a suite needs none."""
        self.data = data
        self._task: Task | None = None
        """The running episode's task, if an adapter keeps it here."""
        self.observation_space = AnyText()
        self.action_space = AnyText()

    def warm(self) -> None:
        """Start what the first episode would have to start, such as a simulator's process. Calling it is optional."""

    @abstractmethod
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start `options["task"]`. Return the first observation and an `Info`."""

    @abstractmethod
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Return (observation, reward = gain in progress rate, terminated, False, `Info`)."""

    @property
    @abstractmethod
    def goal(self) -> str:
        """The goal text shown to the agent, known after `reset`."""

    @abstractmethod
    def valid_actions(self) -> list[str]:
        """Return every action that the world would accept now, sorted. Computed only when called: it can be slow."""

    @abstractmethod
    def oracle(self) -> list[str]:
        """Return a plan from the state right after `reset` that solves the current task; [] if none is known.

        Leaves the running episode as it was. Deterministic.
        """

    def reference_plans(self) -> dict[str, list[str]]:
        """Return named plans for the audit of labels: the oracle's, and others that solve the task by the simulator's
        own verdict (a recorded solution, the direct way to the mission), if the two can differ."""
        return {"oracle": self.oracle()}

    @staticmethod
    def playing(part: T | None) -> T:
        """Return `part` of the running episode, which is None in an adapter until the first `reset`.

        Raises NoEpisodeError before that.
        """
        if part is None:
            raise NoEpisodeError
        return part

    @staticmethod
    def info(
        *,
        progress: float,
        success: bool,
        valid: bool,
        solved: bool | None = None,
        completed: tuple[int, ...] = (),
        **further: Unpack[OptionalInfo],
    ) -> dict[str, Any]:
        """Return an `Info`; `solved` equals `success` if the simulator has no verdict of its own."""
        info: Info = {
            "progress": progress,
            "success": success,
            "solved": success if solved is None else solved,
            "valid": valid,
            "subgoals_completed": completed,
            **further,
        }
        return dict(info)
