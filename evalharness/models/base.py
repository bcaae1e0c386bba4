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
    """Whether the server reports for every reply whether a stop sequence ended the reply."""
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
    """Name of the reference plan whose action this reply contains; None if the policy follows no reference plan."""


@dataclass(frozen=True)
class RequestForm:
    """The form of one chat request; `Sampling` has the sampling fields that are the same for all requests."""

    stop: tuple[str, ...] = ()
    """Stop sequences."""
    response_format: Mapping[str, Any] | None = None
    """`response_format` of the chat completions API: a JSON schema that the server enforces."""
    max_tokens: int | None = None
    """None: use the value of `Sampling`."""
    episode: str = ""
    """Key of the episode. A header sends it, so that a router can send all requests of an episode to one server."""
    temperature: float | None = None
    """None: use the value of `Sampling`."""
    tools: bool = False
    """Whether to send the tool `act(command)` instead of the stop sequences."""
    nonce: str = ""
    """Part of the seed, so that several requests of one turn get different seeds."""


class PolicyError(InfrastructureError):
    """The policy gave no usable reply because infrastructure failed; the run starts the episode again."""

    refuses_all = False
    """Whether the server would also refuse the requests of all other episodes."""


class ContextOverflowError(Exception):
    """The conversation no longer fits the model's context; the loop drops old turns and sends the request again."""


class PolicyStoppedError(Exception):
    """A scripted policy has no further action in this episode (an oracle without a plan, a replay at its end)."""


class Environment(Protocol):
    """The environment of a running episode, in its own process."""

    @property
    def last_call(self) -> CallTimes:
        """Times of the last call of `reset` or `step`."""

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        """Reset the environment; return (goal, first observation, info)."""

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        """Execute the action; return (observation, terminated, info)."""

    async def valid_actions(self) -> list[str]: ...

    async def oracle(self) -> list[str]: ...

    async def reference_plans(self) -> dict[str, list[str]]: ...


class Player(Protocol):
    """Gives a policy's replies in one episode, or in one conversation without an environment."""

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        """Answer the conversation so far; `turn` counts from 1. Without `form`, the player uses its own."""

    async def confirm(self) -> None:
        """Check after the last reply that the server still serves the model with which the run began. Raises UserError
        if it serves another model, InfrastructureError if the server does not answer."""
        return  # a scripted policy has no model that could change

    def finish(self, episode: Episode) -> Episode:
        """Return the episode with facts that only the policy knows. The loop calls this once, at the episode's end."""
        return episode

    def void(self) -> None:
        """Discard the episode. The loop calls this instead of `finish` if infrastructure failed."""
        return


class Policy(Protocol):
    def player(self, task: Task, sample: int, environment: Environment) -> Player: ...
