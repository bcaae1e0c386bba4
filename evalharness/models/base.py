"""The types between the episode loop and a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalharness.base.errors import InfrastructureError
from evalharness.base.timing import CallTimes
from evalharness.envs.base import Task
from evalharness.protocol.prompt import Message
from evalharness.protocol.tools import ToolCall
from evalharness.records.episode import Episode, FailedTry


@dataclass(frozen=True)
class Reply:
    """One reply of a policy. Token counts are None if the server reports none."""

    text: str
    reasoning: str = ""
    """Reasoning text that the server sends separately."""
    finish_reason: str = "stop"
    """As in the chat completions API: `stop`, `length`, ..."""
    stopped_by: str | None = None
    """The stop sequence that ended generation, if the server reports it."""
    tells_stop: bool = True
    """Whether the server reports for every reply if a stop sequence ended it."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """All generated tokens, including reasoning."""
    reasoning_tokens: int | None = None
    """Tokens of the reasoning, if the server counts them."""
    cached_tokens: int | None = None
    """Prompt tokens that the server found in its cache."""
    calls: tuple[ToolCall, ...] = ()
    source: Mapping[str, str | None] = field(default_factory=dict)
    """Facts about the model and the server that made the reply, by the keys of `records.identity.SOURCE`."""
    latency: float = 0.0
    """Seconds from sending the request to the end of the answer; failed tries are not included."""
    failed_tries: tuple[FailedTry, ...] = ()
    plan: str | None = None
    """Name of the reference plan that this reply belongs to, if the policy follows one."""


@dataclass(frozen=True)
class RequestForm:
    """The form of a requested reply; `Sampling` holds how its tokens are sampled."""

    stop: tuple[str, ...] = ()
    """Stop sequences."""
    response_format: Mapping[str, Any] | None = None
    """The field of the chat completions API, for servers that can enforce a JSON schema."""
    max_tokens: int | None = None
    """None: use the value of `Sampling`."""
    episode: str = ""
    """Key of the episode, for a router that groups requests; it is sent in a header, not in the request's body."""
    temperature: float | None = None
    """None: use the value of `Sampling`."""
    tools: bool = False
    """Send the tool `act(command)`, and no stop sequences."""
    nonce: str = ""
    """Part of the seed, so that several requests of one turn get different seeds."""


class PolicyError(InfrastructureError):
    """The policy gave no usable reply, and the model is not the cause: the episode is started again."""

    refuses_all = False
    """Further requests would also be refused: no other episode can be played now."""


class ContextOverflowError(Exception):
    """The conversation no longer fits the model's context; the loop drops old turns and sends the request again."""


class PolicyStoppedError(Exception):
    """A scripted policy has no further action in this episode (an oracle without a plan, a replay at its end)."""


class Environment(Protocol):
    """The environment of a running episode, in its own process."""

    @property
    def last_call(self) -> CallTimes:
        """Times of the last call."""

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        """Reset the environment; return (goal, first observation, info)."""

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        """Execute the action; return (observation, terminated, info)."""

    async def valid_actions(self) -> list[str]: ...

    async def oracle(self) -> list[str]: ...

    async def reference_plans(self) -> dict[str, list[str]]: ...


class Player(Protocol):
    """A policy's side of one episode, or of one conversation without an environment."""

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        """Answer the conversation so far; `turn` counts from 1. Without `form`, the player uses its own."""

    async def confirm(self) -> None:
        """Check after the last reply that all replies came from the model that the run began with. Raises UserError if
        they did not, InfrastructureError if this cannot be checked now."""
        return  # a scripted policy has no model that could change

    def finish(self, episode: Episode) -> Episode:
        """Called once at the episode's end. Return the episode with the facts that only the policy knows."""
        return episode

    def void(self) -> None:
        """Called instead of `finish` if infrastructure failed: the episode is started again."""
        return


class Policy(Protocol):
    def player(self, task: Task, sample: int, environment: Environment) -> Player: ...
