"""The interface of an agent, which turns a task and observations into messages, and a reply into an action.

At each turn the loop gets messages from the agent, sends them to the model, gives the reply to the agent, executes the
action, and gives the observation to the agent. An agent does no I/O and uses no random numbers. So with the recorded
replies and observations it returns the same messages again; `verify`, the report and the exports depend on this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.protocol.react import ParsedReply
from evalharness.protocol.tools import ToolCall

ACT = "act"
"""Purpose of the request whose reply is the turn's action."""


class ContextFullError(Exception):
    """The agent's messages exceed the model's context, and cannot be shortened further."""


@dataclass(frozen=True)
class EpisodeStart:
    """The information that an agent gets before its first turn; the run's perturbation applies to all texts."""

    task_id: str
    family: str
    kind: str
    goal: str
    observation: str
    max_turns: int
    prompt: PromptFile
    """Prompt of this kind of task."""
    actions: ActionSurface
    """Wording of the actions."""
    valid_actions: tuple[str, ...] | None = None
    """Valid actions, if the agent needs them (`needs_valid_actions`)."""
    keep_thinking: bool = False
    """Whether a reply's reasoning stays in later messages."""


@dataclass(frozen=True)
class Request:
    messages: list[Message]
    purpose: str = ACT
    """`act`, or the purpose of another call in the same turn, such as `think`."""
    stop: tuple[str, ...] = ()
    tools: bool = False
    """Whether the request contains the tool `act(command)`."""
    max_tokens: int | None = None
    """None: use the run's option."""
    temperature: float | None = None
    """None: use the run's option."""


@dataclass(frozen=True)
class ModelReply:
    """The part of a reply that an agent may read, without token counts and times."""

    text: str
    reasoning: str = ""
    """Reasoning that the server sent separately from the text."""
    calls: tuple[ToolCall, ...] = ()
    stopped_by: str | None = None
    """The stop sequence that ended generation, if the server reports it."""
    truncated: bool = False
    """Whether the token limit ended the reply."""


class AgentOptions(BaseModel):
    """Options of an agent: each field is one `--agent-option NAME=VALUE`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Agent(ABC):
    """The base class of agents. Each episode has its own instance."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Increase it when the same record would give different messages or actions: such runs cannot be compared."""
    Options: ClassVar[type[AgentOptions]] = AgentOptions
    needs_valid_actions: ClassVar[bool] = False
    """Whether the agent gets the list of valid actions with every observation."""
    calls_tools: ClassVar[bool] = False
    """Whether the model acts by calling the tool `act(command)`; its server must parse tool calls."""
    appends: ClassVar[bool] = False
    """Whether each request of an episode begins with the whole previous request, until the context is full."""

    def __init__(self, options: AgentOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()

    def wants_valid_actions(self) -> bool:
        """Return whether these options need the list of valid actions."""
        return self.needs_valid_actions

    @abstractmethod
    def start(self, episode: EpisodeStart) -> None:
        """Begin the episode."""

    @abstractmethod
    def request(self) -> Request:
        """Return the next request. Repeated calls return the same request."""

    @abstractmethod
    def read(self, reply: ModelReply) -> ParsedReply | None:
        """Read the reply to the last request. Return a parsed reply; without an action it costs the turn, and
        `correction` gives the reason. Return None if the turn needs another request (`request`)."""

    @abstractmethod
    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        """Receive the answer to the last reply: the environment's observation, or the correction."""

    @abstractmethod
    def correction(self, parsed: ParsedReply) -> str:
        """Return the observation for a reply without an action."""

    def shorten(self) -> int:
        """Drop older turns because the last request did not fit the model's context; return how many were dropped.
        Raises ContextFullError if no turn can be dropped."""
        raise ContextFullError

    def turn_messages(self, parsed: ParsedReply, reply: ModelReply, observation: str) -> list[Message]:
        """Return the turn as a message of the model and a message with the observation, for exports of chats."""
        return [
            {"role": "assistant", "content": reply.text or "(no reply)"},
            {"role": "user", "content": f"Observation: {observation}"},
        ]
