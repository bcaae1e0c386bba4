"""Use the environments in SkyRL, as a `BaseTextEnv`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from evalharness.rl.clients.session import Session


class WorldTextEnv(BaseTextEnv):  # type: ignore[misc]
    """`env_config` has the server's `url`. The column `reset` of a data set's row has the options of `Session.reset`,
    such as `{"split": "train", "index": 3}`."""

    def __init__(self, env_config: Mapping[str, Any], extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._reset = dict((extras or {}).get("reset") or {})
        self._session = Session(env_config["url"])
        self._state: dict[str, Any] = {}

    def init(self, prompt: list[dict[str, str]]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Begin the episode. `prompt` is ignored, because the server sends the same prompt as in an evaluation."""
        turn = self._session.reset(**self._reset)
        self._state = self._session.state()
        self.max_turns = self._state["max_turns"]
        return turn.messages, dict(self._state)

    def step(self, action: str) -> BaseTextEnvStepOutput:
        turn = self._session.step(action)
        self.turns += 1
        self._state = self._session.state()
        return BaseTextEnvStepOutput(
            observations=[] if turn.done else turn.messages,
            reward=turn.reward,
            done=turn.done,
            metadata=dict(self._state),
        )

    def get_metrics(self) -> dict[str, Any]:
        return {name: float(self._state.get(name, 0.0)) for name in ("success", "progress")}

    def close(self) -> None:
        self._session.close()
