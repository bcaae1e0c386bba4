"""Run several worlds of one family in this process, with gymnasium's vector interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from evalharness.envs.task import InvalidTaskError

if TYPE_CHECKING:
    from evalharness.envs.base import EnvSpec


class TextVectorEnv(gymnasium.vector.VectorEnv[tuple[str, ...], Sequence[str], Any]):
    """Several worlds in one process. They step one after the other, because a step takes less time than a message to
    another process.

        envs = gymnasium.make_vec("evalharness.envs:evalharness/BabyAI-v0", num_envs=4)
        observations, infos = envs.reset(options={"task": task})        # a group: the same task four times
        observations, infos = envs.reset(options={"tasks": [a, b, c, d]})
        observations, rewards, terminated, truncated, infos = envs.step(["look"] * 4)

    No world restarts by itself. An ended world stays unchanged, with reward 0 and its last info, until
    `reset(options={"tasks": [...], "reset_mask": mask})` restarts the worlds in the mask.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012  (gymnasium's own attribute)

    def __init__(self, spec: EnvSpec, num_envs: int, data: Path | None = None) -> None:
        self.num_envs = num_envs
        self.envs = [spec.make(data) for _ in range(num_envs)]
        self.single_observation_space = self.envs[0].observation_space
        self.single_action_space = self.envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observations = [""] * num_envs
        self._infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """`options`: `task` for all, or one of `tasks` per world; `reset_mask`: worlds to restart (default: all)."""
        asked = options or {}
        tasks = asked["tasks"] if "tasks" in asked else [asked.get("task")] * self.num_envs
        if len(tasks) != self.num_envs:
            raise InvalidTaskError(f"{len(tasks)} tasks for {self.num_envs} worlds: give one for each")
        chosen = np.asarray(asked.get("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if chosen.dtype != np.bool_ or chosen.shape != (self.num_envs,):
            raise ValueError(f"reset_mask: give {self.num_envs} booleans, one for each world")
        for i in np.flatnonzero(chosen).tolist():
            self._observations[i], self._infos[i] = self.envs[i].reset(options={"task": tasks[i]})
            self._ended[i] = False
        return tuple(self._observations), self._all_infos()

    def _all_infos(self) -> dict[str, Any]:
        """Return the last info of every world, including ended worlds."""
        infos: dict[str, Any] = {}
        for i, info in enumerate(self._infos):
            infos = self._add_info(infos, info, i)
        return infos

    def step(
        self, actions: Sequence[str]
    ) -> tuple[
        tuple[str, ...], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], dict[str, Any]
    ]:
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise ValueError(f"give {self.num_envs} actions, one for each world")
        rewards = np.zeros(self.num_envs)
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if not self._ended[i]:
                self._observations[i], rewards[i], self._ended[i], _, self._infos[i] = env.step(action)
        truncated = np.zeros(self.num_envs, dtype=bool)
        return tuple(self._observations), rewards, self._ended.copy(), truncated, self._all_infos()

    def close_extras(self, **_: Any) -> None:
        for env in self.envs:
            env.close()
