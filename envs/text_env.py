"""The class of every environment. It needs gymnasium, a third of a second of CPU; `evalharness.envs.base` imports it
when asked."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, TypeVar, Unpack

import gymnasium

from evalharness.envs.task import Info, NoEpisodeError, OptionalInfo, Task

T = TypeVar("T")


class AnyText(gymnasium.spaces.Space[str]):
    """The space of every string. `gymnasium.spaces.Text` is bounded in length and alphabet; a model is not."""

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

    Promises every adapter keeps:

    * any string is survivable as an action; what the world cannot do yields an ordinary observation;
    * the same task and actions give the same observations, independent of earlier episodes;
    * `reset(options={"task": task})` may be called any number of times on one instance; before the first call
      everything else raises `NoEpisodeError`;
    * `terminated` means the task is solved or the world has ended; turn limits are the caller's
      business, so `truncated` is always false.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own attribute)

    def __init__(self, data: Path | None = None) -> None:
        """`data` is the user's data folder (it holds `agentboard/<family>/...`); None where a suite needs none."""
        self.data = data
        self._task: Task | None = None
        """Of the running episode, where an adapter keeps it here."""
        self.observation_space = AnyText()
        self.action_space = AnyText()

    def warm(self) -> None:
        """Start what the first episode would have to start, a simulator's process for one. Nobody has to call it."""

    @abstractmethod
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start `options["task"]`. Returns the first observation and an `Info`."""

    @abstractmethod
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Returns (observation, reward = gain in progress rate, terminated, False, `Info`)."""

    @property
    @abstractmethod
    def goal(self) -> str:
        """The goal text shown to the agent, known after `reset`."""

    @abstractmethod
    def valid_actions(self) -> list[str]:
        """Every action the world would accept now, sorted. Computed only when called: it can be slow."""

    @abstractmethod
    def oracle(self) -> list[str]:
        """A plan from the state right after `reset` that solves the current task; [] when none is known.

        Leaves the running episode as it was. Deterministic.
        """

    def reference_plans(self) -> dict[str, list[str]]:
        """Named plans that the audit of labels replays: the oracle's, and others that solve the task in the
        simulator's own eyes (a recorded solution, the direct way to the mission), where the two can differ."""
        return {"oracle": self.oracle()}

    @staticmethod
    def playing(part: T | None) -> T:
        """`part` of the running episode, which an adapter has as None until the first `reset`.

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
        """An `Info`; `solved` is as `success` where the simulator has no verdict of its own."""
        info: Info = {
            "progress": progress,
            "success": success,
            "solved": success if solved is None else solved,
            "valid": valid,
            "subgoals_completed": completed,
            **further,
        }
        return dict(info)
