"""OpenEnv: the environments as its `Environment` class, for people who run OpenEnv's own server or want no socket.

`evalharness env serve` speaks OpenEnv's protocol itself; its clients do not need this module.
"""

from __future__ import annotations

from typing import Any

from openenv.core.env_server import Action, Environment, Observation, State
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field

from evalharness.rl.clients.session import Session, SessionError, StepResult, tasks


class TextAction(Action):  # type: ignore[misc]
    text: str = Field(description="The model's whole reply, thought and action")


class TextObservation(Observation):  # type: ignore[misc]
    text: str = ""
    messages: list[dict[str, str]] = Field(default_factory=list)
    kept: str | None = None


class WorldEnvironment(Environment[TextAction, TextObservation, State]):  # type: ignore[misc]
    """`create_app(partial(WorldEnvironment, url), TextAction, TextObservation, max_concurrent_envs=64)`."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, url: str, token: str | None = None) -> None:
        super().__init__()
        self._url, self._token = url, token
        self._session: Session | None = None
        """The first reset opens it: a client that only lists the tasks needs no session."""

    def reset(self, seed: int | None = None, episode_id: str | None = None, **which: Any) -> TextObservation:
        if self._session is None:
            self._session = Session(self._url, token=self._token)
        try:
            return _observation(self._session.reset(seed=seed, episode_id=episode_id, **which))
        except SessionError:
            self.close()  # the connection may be lost; the next reset opens another one
            raise

    def step(self, action: TextAction, timeout_s: float | None = None, **_: Any) -> TextObservation:
        if self._session is None:
            raise RuntimeError("no episode is open: reset first")
        return _observation(self._session.step(action.text))

    @property
    def state(self) -> State:
        return State() if self._session is None else State(**self._session.state())

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(name="evalharness", description=f"The environments served at {self._url}")

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def list_splits(self) -> list[str]:
        return ["train", "validation"]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return tasks(self._url, split, token=self._token)

    def num_tasks(self, split: str) -> int:
        return len(self.list_tasks(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        if index < 0:
            raise IndexError(index)
        return self.list_tasks(split)[index]

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        return self.list_tasks(split)[start:stop]


def _observation(turn: StepResult) -> TextObservation:
    return TextObservation(
        text=turn.text, messages=turn.messages, kept=turn.kept, done=turn.done, reward=turn.reward
    )
