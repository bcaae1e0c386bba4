"""The policy's side of the episode loop."""

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
    """What the server said beside the text."""
    finish_reason: str = "stop"
    """As the chat completions API says it: `stop`, `length`, ..."""
    stopped_by: str | None = None
    """The stop sequence that ended generation, if the server reports it."""
    tells_stop: bool = True
    """Whether the server says for every reply if a stop sequence ended it."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """All that was generated, reasoning included."""
    reasoning_tokens: int | None = None
    """Tokens of the reasoning, if the server counts them."""
    cached_tokens: int | None = None
    """Prompt tokens that the server found in its cache."""
    calls: tuple[ToolCall, ...] = ()
    source: Mapping[str, str | None] = field(default_factory=dict)
    """Facts about the model and the server that made the reply, by the keys of `records.identity.SOURCE`."""
    latency: float = 0.0
    """Seconds from sending the request that was answered to the whole answer; failed tries are not in it."""
    failed_tries: tuple[FailedTry, ...] = ()
    plan: str | None = None
    """Name of the known plan that this reply belongs to, if the policy carries one out."""


@dataclass(frozen=True)
class RequestForm:
    """What a reply may look like, beside how it is drawn."""

    stop: tuple[str, ...] = ()
    """Texts that end it."""
    response_format: Mapping[str, Any] | None = None
    """As the chat completions API takes it, for servers that can be held to a JSON schema."""
    max_tokens: int | None = None
    """None: as the sampling says."""
    episode: str = ""
    """Tells a router which requests belong together; the server never sees it in the request's body."""
    temperature: float | None = None
    """None: as the sampling says."""
    tools: bool = False
    """Send the tool `act(command)`, and no stop sequences."""
    nonce: str = ""
    """Added to the seed, so that several requests of one turn get different seeds."""


class PolicyError(InfrastructureError):
    """The policy gave no usable reply, and the model is not the cause: the episode is started over."""

    refuses_all = False
    """Further requests would be refused, too: no other episode can be played now."""


class ContextOverflowError(Exception):
    """The conversation no longer fits the model's context; the loop drops old turns and asks again."""


class PolicyStoppedError(Exception):
    """A scripted policy has nothing more to do in this episode (an oracle without a plan, a replay at its end)."""


class Environment(Protocol):
    """A running episode's world, in its own process."""

    @property
    def last_call(self) -> CallTimes:
        """Times of the call that returned last."""

    async def reset(self, task: Task) -> tuple[str, str, dict[str, Any]]:
        """Returns (goal, first observation, info)."""

    async def step(self, action: str) -> tuple[str, bool, dict[str, Any]]:
        """Returns (observation, terminated, info)."""

    async def valid_actions(self) -> list[str]: ...

    async def oracle(self) -> list[str]: ...

    async def reference_plans(self) -> dict[str, list[str]]: ...


class Player(Protocol):
    """A policy's side of one episode, or of one conversation without an environment."""

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        """Answer the conversation so far; `turn` counts from 1. `form`: None is the player's own."""

    async def confirm(self) -> None:
        """Called once after the last reply: return when it is known that all came from the policy that the run began
        with. Raises UserError if they did not, InfrastructureError if that cannot be known now."""
        return  # a script is what it is

    def finished(self, episode: Episode) -> Episode:
        """Called once at its end. The episode as it is kept, with what the policy alone knows of it."""
        return episode

    def void(self) -> None:
        """Called instead of `finished` if infrastructure failed: the episode is started over."""
        return


class Policy(Protocol):
    def player(self, task: Task, sample: int, environment: Environment) -> Player: ...
