"""Replace verl-agent's ALFWorld simulators by the server. verl-agent keeps its own prompts, history and action parser.

In `make_envs` of `agent_system/environments/env_manager.py`, import `build_alfworld_envs` from here and set
`alf_config_path` to the server's address.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalharness.rl.clients.session import Session, StepResult, all_results, tasks

_KINDS = {
    "put": "pick_and_place_simple",
    "clean": "pick_clean_then_place_in_recep",
    "heat": "pick_heat_then_place_in_recep",
    "cool": "pick_cool_then_place_in_recep",
    "examine": "look_at_obj_in_light",
    "puttwo": "pick_two_obj_and_place",
}
"""The harness's kind of task -> ALFWorld's name for it, which verl-agent looks for in the path of the game file."""


def build_alfworld_envs(
    url: str,
    seed: int,
    env_num: int,
    group_n: int,
    resources_per_worker: Any = None,
    is_train: bool = True,
    env_kwargs: Any = None,
) -> AlfworldEnvs:
    """Replace verl-agent's function of this name. `resources_per_worker` is ignored, because there are no Ray actors;
    `env_kwargs` is ignored, because the server defines the split `validation`."""
    return AlfworldEnvs(url, seed, env_num, group_n, split="train" if is_train else "validation")


class AlfworldEnvs:
    """Plays `env_num` tasks at a time, each in `group_n` parallel episodes, over one connection.

    Each reset takes the next tasks of a shuffled list, so no task is repeated before all were played.
    """

    def __init__(
        self,
        url: str,
        seed: int,
        env_num: int,
        group_n: int = 1,
        *,
        split: str = "train",
        token: str | None = None,
    ) -> None:
        self.env_num, self.group_n, self.num_processes = env_num, group_n, env_num * group_n
        self._split, self._seed, self._resets = split, seed, 0
        self._order = _shuffle(tasks(url, split, token=token), seed)
        self._session = Session(url, token=token)
        self._tasks: list[Mapping[str, Any]] = []
        self._turns: list[StepResult] = []

    def reset(self) -> tuple[list[str], None, list[dict[str, Any]]]:
        """Return (observations, None in place of images, infos)."""
        chosen = [next(self._order) for _ in range(self.env_num)]
        self._tasks = [task for task in chosen for _ in range(self.group_n)]
        self._resets += 1
        episodes = [self._which(i) for i in range(self.num_processes)]
        self._turns = all_results(self._session.reset_many(episodes))
        return [turn.text for turn in self._turns], None, self._infos()

    def step(
        self, actions: Sequence[str]
    ) -> tuple[list[str], None, list[float], list[bool], list[dict[str, Any]]]:
        """Return (observations, None for images, rewards, dones, infos). Actions of ended episodes are ignored."""
        if len(actions) != self.num_processes:
            raise ValueError(f"{len(actions)} actions for {self.num_processes} episodes")
        playing = [i for i, turn in enumerate(self._turns) if not turn.done]
        if playing:
            turns = all_results(self._session.step_many([{"text": actions[i]} for i in playing], playing))
            for i, turn in zip(playing, turns, strict=True):
                self._turns[i] = turn
        infos = self._infos()
        rewards = [10.0 * info["won"] for info in infos]
        return [turn.text for turn in self._turns], None, rewards, [turn.done for turn in self._turns], infos

    @property
    def get_admissible_commands(self) -> list[list[str]]:
        """The admissible commands of each episode; empty after its end. verl-agent expects a property of this name."""
        return [turn.admissible or [] for turn in self._turns]

    def close(self) -> None:
        self._session.close()

    def _which(self, index: int) -> dict[str, Any]:
        return {
            "split": self._split,
            "task_id": self._tasks[index]["id"],
            "reward": "success",
            "bare": True,
            # A group's episodes have one id, so that `--perturb random` gives them the same wording.
            "episode_id": f"{self._seed}/{self._resets}/{index // self.group_n}",
        }

    def _infos(self) -> list[dict[str, Any]]:
        return [
            {
                "won": turn.done and turn.reward > 0,
                "admissible_commands": turn.admissible or [],
                "extra.gamefile": f"{_KINDS.get(task['kind'], task['kind'])}/{task['id']}",
                "observation_text": turn.text,
            }
            for task, turn in zip(self._tasks, self._turns, strict=True)
        ]


def _shuffle(listed: Sequence[Mapping[str, Any]], seed: int) -> Iterator[Mapping[str, Any]]:
    """Yield all tasks in shuffled order, and then in a new shuffled order, without end."""
    draw = random.Random(seed)
    while True:
        yield from draw.sample(listed, len(listed))
