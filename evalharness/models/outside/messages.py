"""What an agent from outside sends and gets: OpenEnv's shapes over the WebSocket, the same fields over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MOST_ACTION = 20_000
"""Characters of an action; the longest that a simulator understands has some hundred."""
MOST_THOUGHT = 100_000
"""Characters of what the agent notes beside it."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Usage(_Strict):
    """What the agent says that it used since its last action. Nothing of it can be checked."""

    model: str | None = Field(default=None, max_length=200)
    prompt_tokens: int | None = Field(default=None, ge=0, le=2**40)
    completion_tokens: int | None = Field(default=None, ge=0, le=2**40)
    cost: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)


class Action(_Strict):
    """One action. Only `text` is required."""

    text: str = Field(max_length=MOST_ACTION, description="The action, as the instructions word actions")
    thought: str = Field(
        default="", max_length=MOST_THOUGHT, description="Kept in the record, and read by nobody"
    )
    usage: Usage | None = Field(default=None, description="What the agent says that it used")
    metadata: dict[str, Any] = Field(default_factory=dict, description="OpenEnv's; not read")


class Observation(_Strict):
    """All that an agent from outside sees."""

    text: str = Field(description="What is observed now")
    goal: str
    instructions: str | None = Field(
        default=None, description="What kind of world this is and how actions are worded; once an episode"
    )
    turns_left: int = Field(ge=0)
    valid_actions: list[str] | None = Field(
        default=None, description="Only in a run with --agent-option valid_actions=true"
    )
    metadata: dict[str, Any] = Field(default_factory=dict)


class ResetRequest(_Strict):
    """The next episode. Which one is not the agent's choice: what OpenEnv's clients can send is read and not used."""

    seed: int | None = None
    episode_id: str | None = Field(default=None, max_length=255)


class StepRequest(_Strict):
    """Over HTTP."""

    session: str = Field(max_length=100, description="As the answer to /reset says")
    action: Action | str


class SessionRequest(_Strict):
    session: str = Field(max_length=100)


class State(_Strict):
    """OpenEnv's `state`: nothing about the score."""

    episode_id: str | None = None
    step_count: int = Field(default=0, ge=0)


def schemas() -> dict[str, Any]:
    observation = Observation.model_json_schema()
    return {
        "action": Action.model_json_schema(),
        "observation": observation,
        "reset_observation": observation,
        "state": State.model_json_schema(),
    }
