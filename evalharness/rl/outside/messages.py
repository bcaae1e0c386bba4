"""The JSON messages between the harness and an external agent, over HTTP."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MOST_ACTION = 20_000
"""Characters of an action; the longest action that a simulator understands has some hundred."""
MOST_THOUGHT = 100_000
"""Characters of the thought that the agent may send with an action."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Usage(_Message):
    """What the agent reports to have used since its last action. The harness cannot check it."""

    model: str | None = Field(default=None, max_length=200)
    prompt_tokens: int | None = Field(default=None, ge=0, le=2**40)
    completion_tokens: int | None = Field(default=None, ge=0, le=2**40)
    cost: float | None = Field(default=None, ge=0, le=1e9, allow_inf_nan=False)


class Action(_Message):
    """One action. Only `text` is required."""

    text: str = Field(max_length=MOST_ACTION, description="The action, as the instructions word actions")
    thought: str = Field(
        default="", max_length=MOST_THOUGHT, description="Kept in the record, and read by nobody"
    )
    usage: Usage | None = Field(default=None, description="What the agent says that it used")


class Observation(_Message):
    """All that an external agent sees."""

    text: str = Field(description="What is observed now")
    goal: str
    instructions: str | None = Field(
        default=None, description="What kind of world this is and how actions are worded; once an episode"
    )
    turns_left: int = Field(ge=0)
    valid_actions: list[str] | None = Field(
        default=None, description="Only in a run with --agent-option valid_actions=true"
    )


class Request(_Message):
    """The message of `/reset` and `/close`, which has no fields: the token identifies the episode."""


class StepRequest(_Message):
    action: Action | str
