"""The record of an external agent: how it ended an episode, and its own statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

OutsideEnd = Literal["left", "timeout", "too_many_requests", "exited"]
"""How an agent ended its episode early: it closed the connection, gave no action within the turn's time limit, asked
without acting, or its process ended. Each counts as its own failure."""
_Said = Annotated[int, Field(ge=0, le=2**53)]


@dataclass(frozen=True)
class Outside:
    """For one episode. Model, tokens and cost are the agent's own statements, which nothing checks."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    stopped: OutsideEnd | None = None
    handed_out: Annotated[int, Field(ge=1, le=2**31)] = 1
    """How often the run gave the task to an agent; more than once after an infrastructure failure."""
    model: str | None = None
    prompt_tokens: _Said | None = None
    completion_tokens: _Said | None = None
    cost: Annotated[float, Field(ge=0)] | None = None
    """In the agent's currency."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}
