"""Connect the evaluation loop with the agent's process for one episode.

If the process leaves after it has got the episode, is too slow, or sends too many requests, the episode counts: an
agent must not get a second try by leaving. If the harness fails, or the process never asks for the episode, the episode
is void: it does not count and is played again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from evalharness.base.errors import InfrastructureError
from evalharness.models.base import PolicyStoppedError
from evalharness.records.outside import Outside, OutsideEnd
from evalharness.rl.outside.messages import Action, Observation, Usage
from evalharness.rl.wire import RefusedError

MOST_REQUESTS = 1000
"""Largest number of requests between two actions. If an agent sends more, its episode ends as failed."""

Key = tuple[str, int]
"""(task id, sample)"""


@dataclass(frozen=True)
class Answer:
    """The answer to the process's `/reset` or `/step`."""

    observation: Observation
    done: bool = False


class Session:
    def __init__(self, key: Key, opening: Observation, note_handout: Callable[[Key], int]) -> None:
        """`note_handout` records that a process gets the episode, and returns how often that has happened."""
        self.key, self.opening = key, opening
        self.token = secrets.token_urlsafe(24)
        self.claimed = asyncio.Event()
        self.handed_out = 0
        self.stopped: OutsideEnd | None = None
        """The reason why the agent's side ended the episode early."""
        self.over = False
        self._note_handout = note_handout
        self._used = Usage()
        self._requests = 0
        """Number of the process's requests since its last action."""
        self._action: asyncio.Future[Action] | None = None
        self._awaited = asyncio.Event()
        """Set when the loop waits for an action or the episode has ended. An action may come earlier."""
        self._answer: asyncio.Future[Answer] | None = None

    # The evaluation loop calls these methods.

    async def next_action(self, turn_s: float) -> Action:
        """Return the next action. Raises PolicyStoppedError if the process sends no action within `turn_s` seconds."""
        if self.stopped is None:
            self._action = asyncio.get_running_loop().create_future()
            self._awaited.set()
            try:
                async with asyncio.timeout(turn_s):
                    return await self._action
            except TimeoutError:
                self.stop("timeout")
            except _StoppedError:
                pass
            finally:
                self._action = None
                self._awaited.clear()
        raise PolicyStoppedError(f"the agent stopped: {self.stopped}")

    def show(self, observation: Observation, *, done: bool = False) -> None:
        """Send the observation as the answer to the last action."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(observation, done))

    def end(self, last: Observation | None) -> None:
        """End the episode with the last observation. If `last` is None, the episode is void, to be played again."""
        self.over = True
        if last is not None:
            self.show(last, done=True)
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(
                RefusedError("EXECUTION_ERROR", "the episode is void and is started over", 500)
            )
            self._answer.exception()  # read the exception, or asyncio warns if no request waits for it
        self._awaited.set()

    def to_record(self) -> Outside:
        return Outside(stopped=self.stopped, handed_out=self.handed_out, **self._used.model_dump())

    # The web server calls these methods when the process asks.

    def count_request(self) -> None:
        """Count a request. Raises RefusedError if there were too many since the last action."""
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            self.stop("too_many_requests")
            raise self._refusal()

    def claim(self) -> Answer:
        """Return the first observation to the process. Raises RefusedError if it was returned before."""
        if self.over:
            raise RefusedError("RUN_OVER", "this process plays one episode, and that is over", 410)
        if self.claimed.is_set():
            raise RefusedError("SESSION_ERROR", "this process plays its one episode already", 409)
        self.handed_out = self._note_handout(self.key)
        self.claimed.set()
        return Answer(self.opening)

    async def act(self, action: Action) -> Answer:
        """Pass the process's action to the loop, and return the observation. Raises RefusedError."""
        if not self.claimed.is_set():
            raise RefusedError("SESSION_ERROR", "no episode has begun: reset first", 409)
        if self.over or self.stopped is not None:
            raise self._refusal()
        if self._answer is not None and not self._answer.done():
            raise RefusedError("SESSION_ERROR", "the answer to the last action is still to come", 409)
        self._answer = answer = asyncio.get_running_loop().create_future()
        await self._awaited.wait()
        if self._action is not None and not self._action.done():
            self._requests = 0
            self._used = _add_usage(self._used, action.usage)
            self._action.set_result(action)
        elif not answer.done():
            raise self._refusal()
        return await asyncio.shield(answer)

    def stop(self, why: OutsideEnd) -> None:
        """Record why the agent's side ended the episode, and wake the loop."""
        if self.over or self.stopped is not None:
            return
        self.stopped = why
        self._awaited.set()
        if self._action is not None and not self._action.done():
            self._action.set_exception(_StoppedError())

    def _refusal(self) -> RefusedError:
        why = {
            "left": "you left it",
            "timeout": "too late, no action came in time",
            "too_many_requests": f"more than {MOST_REQUESTS} requests without an action",
            "exited": "the agent's process ended",
        }
        ended = "is over" if self.stopped is None else f"has ended: {why[self.stopped]}"
        return RefusedError("EXECUTION_ERROR", f"this episode {ended}", 409)


class _StoppedError(Exception):
    pass


@dataclass
class Sessions:
    """The sessions of all processes by token."""

    note_handout: Callable[[Key], int]
    by_token: dict[str, Session] = field(default_factory=dict)
    ever_claimed: bool = False

    def open(self, key: Key, opening: Observation) -> Session:
        session = Session(key, opening, self.note_handout)
        self.by_token[session.token] = session
        return session

    def claim(self, token: str) -> Answer:
        """Give the episode to the process with the token. Raises RefusedError."""
        answer = self.by_token[token].claim()
        self.ever_claimed = True
        return answer


class NeverAskedError(InfrastructureError):
    """The process that was started for an episode never requested the episode."""


def _add_usage(used: Usage, more: Usage | None) -> Usage:
    if more is None:
        return used
    sums = {
        name: mine if new is None else new + (mine or 0)
        for name in ("prompt_tokens", "completion_tokens", "cost")
        for mine, new in [(getattr(used, name), getattr(more, name))]
    }
    return Usage(model=more.model or used.model, **sums)
