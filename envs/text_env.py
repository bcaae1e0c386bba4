"""Define the base class of all environments. It imports gymnasium, which takes a third of a second; so
`evalharness.envs.base` imports this module at its first use."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, TypeVar, Unpack

import gymnasium

from evalharness.envs.task import Info, NoEpisodeError, OptionalInfo, Task

T = TypeVar("T")


class AnyText(gymnasium.spaces.Space[str]):
    """The space of all strings. `gymnasium.spaces.Text` limits length and alphabet, but a model can write any text."""

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
    """A text environment: an action is any string, and an observation is a string.

    Every adapter fulfils these conditions:

    * every string is accepted as an action; an impossible action gives a normal observation;
    * the same task and actions give the same observations, independent of earlier episodes;
    * `reset(options={"task": task})` may be called any number of times on one instance; before the first call, all
      other methods raise `NoEpisodeError`;
    * `terminated` means that the task is solved or the world has ended; the caller limits the turns, so `truncated` is
      always false.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (gymnasium's own attribute)

    def __init__(self, data: Path | None = None) -> None:
        """`data`: the user's data folder, with `agentboard/<family>/...`; None if the suite needs no data."""
        self.data = data
        self._task: Task | None = None
        """Task of the running episode; some adapters do not use it."""
        self.observation_space = AnyText()
        self.action_space = AnyText()

    def warm(self) -> None:
        """Start in advance what the first episode needs, such as a simulator's process. This call is optional."""

    @abstractmethod
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start `options["task"]`. Return the first observation and an `Info`."""

    @abstractmethod
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Return (observation, reward, terminated, False, `Info`). The reward is the gain in progress rate."""

    @property
    @abstractmethod
    def goal(self) -> str:
        """Goal text for the agent, known after `reset`."""

    @abstractmethod
    def valid_actions(self) -> list[str]:
        """Return every action that the world would accept now, sorted. This can be slow."""

    @abstractmethod
    def oracle(self) -> list[str]:
        """Return a plan from the state right after `reset` that solves the current task; [] if none is known.

        The running episode does not change. The result is deterministic.
        """

    def reference_plans(self) -> dict[str, list[str]]:
        """Return name -> plan, to audit labels: the oracle's plan; if labels and simulator can differ, also plans
        that solve the task by the simulator's own verdict (for example a recorded solution)."""
        return {"oracle": self.oracle()}

    @staticmethod
    def playing(part: T | None) -> T:
        """Return `part` of the running episode. An adapter has None before the first `reset`.

        Raise NoEpisodeError if `part` is None.
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
        """Return an `Info`. If the simulator has no verdict of its own, `solved` is equal to `success`."""
        info: Info = {
            "progress": progress,
            "success": success,
            "solved": success if solved is None else solved,
            "valid": valid,
            "subgoals_completed": completed,
            **further,
        }
        return dict(info)
