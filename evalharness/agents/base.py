"""What an agent is: from task and observations to messages, from a reply to an action.

The loop asks the agent what to send, asks the model, gives the agent the reply, carries the action out and gives the
agent what was observed. An agent does no I/O and draws no random numbers: fed with the recorded replies and
observations, it sends the same messages again. `verify`, the report and the exports depend on that.
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
    """What the agent has to send does not fit the model's context, and nothing more can be left out."""


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
    """Of this kind of task."""
    actions: ActionSurface
    """Words the list of actions."""
    valid_actions: tuple[str, ...] | None = None
    """Where the agent asks for them (`needs_valid_actions`)."""
    keep_thinking: bool = False
    """A reply's reasoning stays in what the model reads later."""


@dataclass(frozen=True)
class Request:
    """What to send to the model now."""

    messages: list[Message]
    purpose: str = ACT
    """`act`, or what a further call of the turn is for: `think`, ..."""
    stop: tuple[str, ...] = ()
    tools: bool = False
    """Send the tool `act(command)`."""
    max_tokens: int | None = None
    """None: as the run's sampling says."""
    temperature: float | None = None
    """None: as the run's sampling says."""


@dataclass(frozen=True)
class ModelReply:
    """A reply as an agent may read it: no tokens, no times."""

    text: str
    reasoning: str = ""
    """What the server sent beside the text."""
    calls: tuple[ToolCall, ...] = ()
    stopped_by: str | None = None
    """The stop sequence that ended generation, where the server tells."""
    truncated: bool = False
    """The token limit ended it."""


class AgentOptions(BaseModel):
    """Options of an agent: each field is one `--agent-option NAME=VALUE`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Agent(ABC):
    """One instance plays one episode."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    """Raised whenever the same record would make other messages or other actions: runs of two versions differ."""
    Options: ClassVar[type[AgentOptions]] = AgentOptions
    needs_valid_actions: ClassVar[bool] = False
    """It is given the environment's list of valid actions with every observation."""
    calls_tools: ClassVar[bool] = False
    """Its model acts by calls of the tool `act(command)`; its server must read these."""
    appends: ClassVar[bool] = False
    """Each request of an episode begins with the whole request before it, until the context is full."""

    def __init__(self, options: AgentOptions | None = None) -> None:
        self.options = options if options is not None else self.Options()

    def wants_valid_actions(self) -> bool:
        """Whether these options need the list of valid actions."""
        return self.needs_valid_actions

    @abstractmethod
    def start(self, episode: EpisodeStart) -> None:
        """The episode begins."""

    @abstractmethod
    def request(self) -> Request:
        """What to send now. Asked twice without anything between, it returns the same."""

    @abstractmethod
    def read(self, said: ModelReply) -> ParsedReply | None:
        """The reply to the last request: an action, or none (which costs the turn, and `correction` says why). None:
        that was a further call; `request` says what to send next."""

    @abstractmethod
    def observe(self, observation: str, valid_actions: tuple[str, ...] | None = None) -> None:
        """What came of the reply that was read last: the environment's answer, or the correction."""

    @abstractmethod
    def correction(self, parsed: ParsedReply) -> str:
        """The observation for a reply without an action."""

    def shorten(self) -> int:
        """The last request did not fit the model's context: leave older turns out, and say how many. Raises
        ContextFullError where nothing can go."""
        raise ContextFullError

    def turn_messages(self, parsed: ParsedReply, said: ModelReply, observation: str) -> list[Message]:
        """The turn as one model message and what answered it, for exports that want a chat."""
        return [
            {"role": "assistant", "content": said.text or "(no reply)"},
            {"role": "user", "content": f"Observation: {observation}"},
        ]
