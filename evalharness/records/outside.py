"""What is kept of an agent from outside: how it ended an episode, and what it says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

OutsideEnd = Literal["left", "timeout", "too_many_requests", "exited"]
"""How an agent ended its episode before the end: it closed the connection, gave no action within the turn's time
limit, asked without acting, or its process ended. Its own failure each time."""
_Said = Annotated[int, Field(ge=0, le=2**53)]


@dataclass(frozen=True)
class Outside:
    """Of one episode. Model, tokens and cost are the agent's own words, which nothing checks."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    stopped: OutsideEnd | None = None
    handed_out: Annotated[int, Field(ge=1, le=2**31)] = 1
    """How often the task was given to an agent in this run; more than once after a failure of infrastructure."""
    model: str | None = None
    prompt_tokens: _Said | None = None
    completion_tokens: _Said | None = None
    cost: Annotated[float, Field(ge=0)] | None = None
    """In the agent's currency."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}
