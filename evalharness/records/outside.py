"""Define the record of an external agent: how it ended an episode, and its own statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

OutsideEnd = Literal["left", "timeout", "too_many_requests", "exited"]
"""How an agent ended its episode early: it closed the connection (`left`), gave no action within the time limit, sent
too many requests without acting, or its process ended. Each counts as a failure of the agent."""
_Count = Annotated[int, Field(ge=0, le=2**53)]


@dataclass(frozen=True)
class Outside:
    """Facts about an external agent's episode. The agent itself reports model, tokens and cost; nobody checks them."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    stopped: OutsideEnd | None = None
    handed_out: Annotated[int, Field(ge=1, le=2**31)] = 1
    """Number of times that the run gave the task to an agent; above 1 after an infrastructure failure."""
    model: str | None = None
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    cost: Annotated[float, Field(ge=0)] | None = None
    """Cost in the agent's currency."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}
