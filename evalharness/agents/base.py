"""The interface of an agent: from task and observations to messages, from a reply to an action.

The loop asks the agent for messages, asks the model, gives the reply to the agent, carries the action out, and gives
the observation to the agent. An agent does no I/O and draws no random numbers: with the recorded replies and
observations it sends the same messages again. `verify`, the report and the exports depend on that.
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
    """The agent's messages exceed the model's context, and nothing more can be left out."""


@dataclass(frozen=True)
class EpisodeStart:
    """What an agent knows before its first turn; all texts in the words of the run's perturbation."""

    task_id: str
    family: str
    kind: str
    goal: str
    observation: str
    max_turns: int
    prompt: PromptFile
    """Prompt of this kind of task."""
    actions: ActionSurface
    """Words the list of actions."""
    valid_actions: tuple[str, ...] | None = None
    """Given if the agent needs them (`needs_valid_actions`)."""
    keep_thinking: bool = False
    """Keep a reply's reasoning in later messages."""


@dataclass(frozen=True)
class Request:
    messages: list[Message]
    purpose: str = ACT
    """`act`, or the purpose of a further call in the turn: `think`, ..."""
    stop: tuple[str, ...] = ()
    tools: bool = False
    """Send the tool `act(command)`."""
    max_tokens: int | None = None
    """None: the run's sampling decides."""
    temperature: float | None = None
    """None: the run's sampling decides."""


@dataclass(frozen=True)
class ModelReply:
    """A reply as an agent may read it, without tokens and times."""

    text: str
    reasoning: str = ""
    """Reasoning that the server sent separately from the text."""
    calls: tuple[ToolCall, ...] = ()
    stopped_by: str | None = None
    """The stop sequence that ended generation, if the server reports it."""
    truncated: bool = False
    """The token limit ended the reply."""


class AgentOptions(BaseModel):
    """Options of an agent: each field is one `--agent-option NAME=VALUE`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Agent(ABC):
    """One instance plays one episode."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised whenever the same record would give other messages or actions: runs of two versions are not comparable."""
    Options: ClassVar[type[AgentOptions]] = AgentOptions
    needs_valid_actions: ClassVar[bool] = False
    """The agent gets the environment's list of valid actions with every observation."""
    calls_tools: ClassVar[bool] = False
    """The model acts by calls of the tool `act(command)`; its server must parse tool calls."""
    appends: ClassVar[bool] = False
    """Each request of an episode begins with the whole request before it, until the context is full."""

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
    def read(self, said: ModelReply) -> ParsedReply | None:
        """Read the reply to the last request. Return an action, or a parsed reply without one: it costs the turn, and
        `correction` says why. Return None if the turn needs another request (`request`)."""

    @abstractmethod
    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        """Take the answer to the reply that was read last: the environment's observation, or the correction."""

    @abstractmethod
    def correction(self, parsed: ParsedReply) -> str:
        """Return the observation for a reply without an action."""

    def shorten(self) -> int:
        """Drop older turns because the last request did not fit the model's context, and return their number. Raises
        ContextFullError if nothing can be dropped."""
        raise ContextFullError

    def turn_messages(self, parsed: ParsedReply, said: ModelReply, observation: str) -> list[Message]:
        """Return the turn as one model message and the answer to it, for exports that need a chat."""
        return [
            {"role": "assistant", "content": said.text or "(no reply)"},
            {"role": "user", "content": f"Observation: {observation}"},
        ]
