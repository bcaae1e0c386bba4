"""The interface of an agent, which turns a task and observations into messages, and a reply into an action.

At each turn the loop gets messages from the agent, sends them to the model, gives the reply to the agent, executes the
action, and gives the observation to the agent. An agent does no I/O and uses no random numbers. So it returns the
same messages again for the recorded replies and observations; `verify`, the report and the exports depend on this.
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
"""Purpose of the request whose reply contains the turn's action."""


class ContextFullError(Exception):
    """The agent's messages exceed the model's context, and cannot be shortened further."""


@dataclass(frozen=True)
class EpisodeStart:
    """What an agent gets before its first turn. The texts already contain the wording of the run's perturbation."""

    task_id: str
    family: str
    kind: str
    goal: str
    observation: str
    max_turns: int
    prompt: PromptFile
    """The prompt for this kind of task."""
    actions: ActionSurface
    """The names and texts of actions under the run's perturbation."""
    valid_actions: tuple[str, ...] | None = None
    """The valid actions, if `wants_valid_actions` is true; otherwise None."""
    keep_thinking: bool = False
    """Whether a reply's reasoning stays in later messages."""


@dataclass(frozen=True)
class Request:
    messages: list[Message]
    purpose: str = ACT
    """`act` for the request of the action; another name, such as `think`, for an earlier request of the turn."""
    stop: tuple[str, ...] = ()
    tools: bool = False
    """Whether the request contains the tool `act(command)`."""
    max_tokens: int | None = None
    """None: use the run's option."""
    temperature: float | None = None
    """None: use the run's option."""


@dataclass(frozen=True)
class ModelReply:
    """What an agent may read of a reply. It contains no token counts and no times."""

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
    """Increase it if the same replies now give other messages or actions. Versions are not comparable."""
    Options: ClassVar[type[AgentOptions]] = AgentOptions
    needs_valid_actions: ClassVar[bool] = False
    """Whether the agent gets a list of valid actions with every observation. An agent's options can change this."""
    calls_tools: ClassVar[bool] = False
    """Whether the model acts by calling the tool `act(command)`; its server must parse tool calls."""
    appends: ClassVar[bool] = False
    """Whether each request begins with all messages of the previous request, until the context is full."""

    def __init__(self, options: AgentOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()

    def wants_valid_actions(self) -> bool:
        """Return whether the agent, with its options, needs the list of valid actions at every turn."""
        return self.needs_valid_actions

    @abstractmethod
    def start(self, episode: EpisodeStart) -> None:
        """Store the start of the episode. It is called once, before the first `request`."""

    @abstractmethod
    def request(self) -> Request:
        """Return the next request. Repeated calls return the same request."""

    @abstractmethod
    def read(self, reply: ModelReply) -> ParsedReply | None:
        """Read the reply to the last request. Return the parsed reply; if it has no action, the turn is used up and the
        model gets `correction`. Return None if the turn needs another `request`."""

    @abstractmethod
    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        """Receive the environment's observation, or the correction if the last reply had no action."""

    @abstractmethod
    def correction(self, parsed: ParsedReply) -> str:
        """Return the message that the model gets instead of an observation after a reply without an action."""

    def shorten(self) -> int:
        """Drop older turns, because the last request exceeded the model's context. Return the number of dropped turns.
        Raises ContextFullError if no turn can be dropped."""
        raise ContextFullError

    def turn_messages(self, parsed: ParsedReply, reply: ModelReply, observation: str) -> list[Message]:
        """Return the turn as two chat messages, the model's reply and the observation, for exports."""
        return [
            {"role": "assistant", "content": reply.text or "(no reply)"},
            {"role": "user", "content": f"Observation: {observation}"},
        ]
