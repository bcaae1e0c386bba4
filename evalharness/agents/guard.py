"""Convert an agent's exceptions to AgentFaultError; check and hash the messages of its requests."""

from __future__ import annotations

import hashlib
import json
import traceback
from operator import is_not
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evalharness.agents.base import Agent, ContextFullError, EpisodeStart, ModelReply, Request
from evalharness.base.errors import UserError
from evalharness.protocol.prompt import Message
from evalharness.protocol.react import ParsedReply

MOST_CHARACTERS = 16_000_000
"""Maximum characters of one request. No model has a context of this length."""
_ROLES = ("system", "user", "assistant", "tool")


class AgentFaultError(UserError):
    """The agent's own code failed. The run ends, and the failure does not count against the model."""


class Guarded:
    """Wraps an agent. Its exceptions become AgentFaultError, but ContextFullError stays."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.wants_valid_actions = agent.wants_valid_actions()
        self._place = ""
        self._options = agent.options.model_copy(deep=True)
        self._seen: list[Message] = []
        self.size = 0
        """Number of characters of the last request."""
        self.extends = False
        """Whether the last request begins with all messages of the previous request."""
        self._hash = hashlib.blake2b(digest_size=8)

    @property
    def sent(self) -> str:
        """Return the hash of the messages of the last request."""
        return self._hash.hexdigest()

    def start(self, episode: EpisodeStart) -> None:
        self._place = episode.task_id
        with self:
            self.agent.start(episode)

    def request(self) -> Request:
        with self:
            request = self.agent.request()
        self._check(request)
        return request

    def read(self, reply: ModelReply) -> ParsedReply | None:
        with self:
            parsed = self.agent.read(reply)
        if not (parsed is None or isinstance(parsed, ParsedReply)):
            raise self.fault(f"read() returned {type(parsed).__name__}, not ParsedReply or None")
        return parsed

    def observe(self, observation: str, valid_actions: tuple[str, ...] | None) -> None:
        with self:
            self.agent.observe(observation, valid_actions)
        if self.agent.options != self._options:
            raise self.fault("it has changed its own options, which are part of the run's identity")

    def correction(self, parsed: ParsedReply) -> str:
        with self:
            text = self.agent.correction(parsed)
        if not isinstance(text, str):
            raise self.fault(f"correction() returned {type(text).__name__}, not text")
        return text

    def shorten(self) -> int:
        with self:
            dropped = self.agent.shorten()
        if not (isinstance(dropped, int) and dropped > 0):
            raise self.fault(f"shorten() returned {dropped!r}, not the number of dropped turns")
        return dropped

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, ContextFullError | AgentFaultError):
            frames = traceback.extract_tb(trace)
            last = next((frame for frame in reversed(frames) if frame.filename != __file__), frames[-1])
            lines = f"{type(error).__name__}: {error}".strip(": ").splitlines()
            where = f"{Path(last.filename).name}, line {last.lineno}"
            raise self.fault(f"{lines[0][:300]} ({where})") from error

    def fault(self, what: str) -> AgentFaultError:
        return AgentFaultError(f"agent {self.agent.name}, {self._place}: {what}")

    def _check(self, request: Any) -> None:
        """Check the request's type and its new messages. Old messages are not checked again, because that is slow."""
        if not isinstance(request, Request):
            raise self.fault(f"request() returned {type(request).__name__}, not Request")
        messages = request.messages
        if not isinstance(messages, list) or not messages:
            raise self.fault("request() returned no message")
        known = len(self._seen)
        self.extends = 0 < known < len(messages) and not any(map(is_not, self._seen, messages))
        if not self.extends:
            known, self.size, self._hash = 0, 0, hashlib.blake2b(digest_size=8)
        for number, message in enumerate(messages[known:], known + 1):
            if problem := _find_problem(message):
                raise self.fault(f"message {number} of its request {problem}")
            text = json.dumps(message)
            self.size += len(text)
            self._hash.update(text.encode() + b"\n")
        if self.size > MOST_CHARACTERS:
            raise self.fault(
                f"its request has {self.size} characters, but only {MOST_CHARACTERS} are allowed"
            )
        self._seen = list(messages)


def _find_problem(message: Any) -> str | None:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        return f"has no role out of {', '.join(_ROLES)}"
    if not isinstance(message.get("content"), str):
        return "has no text as its content"
    return None
