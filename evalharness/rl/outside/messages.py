"""The JSON messages between the harness and an external agent, over HTTP."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MOST_ACTION = 20_000
"""Largest number of characters in an action; no simulator's action has more than some hundred."""
MOST_THOUGHT = 100_000
"""Largest number of characters in the thought that the agent may send with an action."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Usage(_Message):
    """Tokens and cost that the agent reports since its last action. The harness cannot check them."""

    model: str | None = Field(default=None, max_length=200)
    prompt_tokens: int | None = Field(default=None, ge=0, le=2**40)
    completion_tokens: int | None = Field(default=None, ge=0, le=2**40)
    cost: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)


class Action(_Message):
    """One action. Only `text` is required."""

    text: str = Field(max_length=MOST_ACTION, description="The action, worded as the instructions say")
    thought: str = Field(
        default="", max_length=MOST_THOUGHT, description="Stored in the record, without effect"
    )
    usage: Usage | None = Field(default=None, description="The tokens and cost that the agent reports")


class Observation(_Message):
    """All that an external agent sees at one turn."""

    text: str = Field(description="The observation of this turn")
    goal: str
    instructions: str | None = Field(
        default=None, description="Describes the environment and its actions; only in the first observation"
    )
    turns_left: int = Field(ge=0)
    valid_actions: list[str] | None = Field(
        default=None, description="The valid actions; only with --agent-option valid_actions=true"
    )


class Request(_Message):
    """The message of `/reset` and `/close`, which has no fields: the token identifies the episode."""


class StepRequest(_Message):
    action: Action | str
