"""Where the loop's episodes and the agents from outside meet: each episode is given to one agent, and to no other.

The rules of whose fault it is. An agent that was given an episode and then leaves, is silent for longer than a turn
may take, or floods the session has failed at it: the episode ends there and counts, for otherwise leaving would be a
way to another try. What fails on our side makes the episode void, and it is started over. An agent that never asked
for its episode was never given one: that is infrastructure, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from evalharness.base.errors import InfrastructureError
from evalharness.models.base import PolicyStoppedError
from evalharness.models.openenv.wire import RefusedError
from evalharness.models.outside.messages import Action, Observation, Usage
from evalharness.models.tries import AbortedError
from evalharness.records.outside import Outside, OutsideEnd

MOST_REQUESTS = 1000
"""That do not act, in one turn. An agent that asks for more has stopped playing."""
RESET_WAIT_S = 45.0
"""Seconds that a reset waits for an episode; OpenEnv's client waits 60 for an answer."""

Key = tuple[str, int]


@dataclass(frozen=True)
class Seen:
    """What the agent gets for a reset or an action."""

    observation: Observation
    done: bool = False


class Offer:
    """One episode from its opening to its end; the loop's player on one side, at most one session on the other."""

    def __init__(self, hub: Hub, key: Key, opening: Observation, token: str | None) -> None:
        self.hub, self.key, self.opening = hub, key, opening
        self.session = secrets.token_urlsafe(16)
        self.token = token
        """Of the process that was started for this episode; None: whoever comes."""
        self.claimed = asyncio.Event()
        self.steps = 0
        self.handed_out = 0
        self.stopped: OutsideEnd | None = None
        """How the agent ended it before its end."""
        self.used = Usage()
        self._action: asyncio.Future[Action] | None = None
        self._awaited = asyncio.Event()
        """The loop waits for an action, or there will be no other. An agent can be quicker than the loop."""
        self._seen: asyncio.Future[Seen] | None = None
        self._requests = 0
        self.over = False

    # The loop's side.

    async def next_action(self, turn_s: float) -> Action:
        """Raises PolicyStoppedError where the agent gives none any more."""
        if self.stopped is None:
            self._action = asyncio.get_running_loop().create_future()
            self._requests = 0
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
        """What came of the last action."""
        if self._seen is not None and not self._seen.done():
            self._seen.set_result(Seen(observation, done))

    def end(self, last: Observation | None) -> None:
        """The episode is over, with what was observed last; None: it is void."""
        self.over = True
        self.hub.forget(self)
        if last is not None:
            self.show(last, done=True)
        if self._seen is not None and not self._seen.done():
            self._seen.set_exception(
                RefusedError("EXECUTION_ERROR", "the episode is void and is started over: reset", 500)
            )
            self._seen.exception()  # nobody may be waiting
        self._awaited.set()

    def said(self) -> Outside:
        """For the record."""
        return Outside(stopped=self.stopped, handed_out=self.handed_out, **self.used.model_dump())

    # The agent's side.

    async def act(self, action: Action) -> Seen:
        """Raises RefusedError."""
        if self.over or self.stopped is not None:
            raise self._no_longer()
        if self._seen is not None and not self._seen.done():
            raise RefusedError("SESSION_ERROR", "the answer to the last action is still to come", 409)
        self._seen = seen = asyncio.get_running_loop().create_future()
        await self._awaited.wait()
        if self._action is not None and not self._action.done():
            self.steps += 1
            self.used = _added(self.used, action.usage)
            self._action.set_result(action)
        elif not seen.done():
            raise self._no_longer()
        return await asyncio.shield(seen)

    def count_request(self) -> None:
        """One that does not act. Raises RefusedError where there were too many in this turn."""
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            self.stop("too_many_requests")
            raise self._no_longer()

    def stop(self, why: OutsideEnd) -> None:
        """The agent has ended it."""
        if self.over or self.stopped is not None:
            return
        self.stopped = why
        self._awaited.set()
        if self._action is not None and not self._action.done():
            self._action.set_exception(_StoppedError())

    def _no_longer(self) -> RefusedError:
        why = {
            "left": "you left it",
            "timeout": "too late, no action came in time",
            "too_many_requests": f"more than {MOST_REQUESTS} requests without an action",
            "exited": "the agent's process ended",
        }
        ended = "is over" if self.stopped is None else f"has ended: {why[self.stopped]}"
        return RefusedError("EXECUTION_ERROR", f"this episode {ended}; reset for the next one", 409)


class _StoppedError(Exception):
    pass


@dataclass
class Hub:
    """All episodes that are open now."""

    wait_s: float
    """How long an episode waits for an agent while nothing is played."""
    on_hand_out: Callable[[Key], int] = lambda key: 1
    """Notes that an episode was given to an agent; how often that has now been."""
    is_over: bool = False
    ever_claimed: bool = False
    _waiting: list[Offer] = field(default_factory=list)
    _played: dict[str, Offer] = field(default_factory=dict)
    """By session."""
    _late: set[str] = field(default_factory=set)
    """Sessions whose agent gave no action in time."""
    _by_token: dict[str, Offer] = field(default_factory=dict)
    _heard: float = field(default_factory=time.monotonic)
    """When an agent was last at work."""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def offer(self, key: Key, opening: Observation, token: str | None = None) -> Offer:
        offer = Offer(self, key, opening, token)
        if token is None:
            self._waiting.append(offer)
        else:
            self._by_token[token] = offer
        await self._tell()
        return offer

    def tokens(self) -> list[str]:
        """Of the processes that episodes were started for."""
        return list(self._by_token)

    async def wait_claimed(self, offer: Offer) -> None:
        """Raises AbortedError where no agent asks for anything any more."""
        while not offer.claimed.is_set():
            quiet = 0.0 if self._played else time.monotonic() - self._heard
            if quiet >= self.wait_s:
                raise AbortedError(
                    f"no agent asked for an episode for {self.wait_s:g} s (agent_wait); what was played is kept: "
                    "start the agent, then the same command again"
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.01, self.wait_s - quiet)):
                    await offer.claimed.wait()

    async def claim(self, token: str, gone: Callable[[], bool]) -> tuple[Offer, Seen]:
        """The episode of the process with this token; of any other agent the next one. `gone` says whether it has left
        while it waited. Raises RefusedError."""
        offer = self._by_token.get(token)
        if offer is not None:
            if offer.over:
                raise RefusedError("RUN_OVER", "this process plays one episode, and that is over", 410)
            if offer.claimed.is_set():
                raise RefusedError("SESSION_ERROR", "this process plays its one episode already", 409)
        else:
            offer = await self._next()
        try:
            if offer.token is None and gone():
                raise RefusedError("SESSION_ERROR", "the agent has left", 409)
            offer.handed_out = self.on_hand_out(offer.key)
        except Exception:
            if offer.token is None:
                self._waiting.insert(0, offer)
                await self._tell()
            raise
        self.ever_claimed = True
        self._played[offer.session] = offer
        offer.claimed.set()
        return offer, Seen(offer.opening)

    def session(self, name: str) -> Offer:
        """Raises RefusedError."""
        if name in self._late:
            raise RefusedError(
                "EXECUTION_ERROR", "too late: no action came in time; reset for the next one", 409
            )
        if (offer := self._played.get(name)) is None:
            raise RefusedError("SESSION_ERROR", "no such session, or its episode is over: reset", 409)
        return offer

    def forget(self, offer: Offer) -> None:
        if offer in self._waiting:
            self._waiting.remove(offer)
        self._played.pop(offer.session, None)
        if offer.stopped == "timeout":
            self._late.add(offer.session)
        self._heard = time.monotonic()

    def forget_token(self, token: str) -> None:
        self._by_token.pop(token, None)

    async def close(self) -> None:
        """No further episode comes: whoever waits for one hears it."""
        self.is_over = True
        await self._tell()

    async def _next(self) -> Offer:
        try:
            async with asyncio.timeout(RESET_WAIT_S), self._changed:
                await self._changed.wait_for(lambda: self._waiting or self.is_over)
                if self._waiting:
                    return self._waiting.pop(0)
        except TimeoutError:
            raise RefusedError("CAPACITY_REACHED", "no episode is open now: reset again", 429) from None
        raise RefusedError("RUN_OVER", "the run is over: there is no further episode", 410)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class NeverAskedError(InfrastructureError):
    """A process was started for an episode and did not ask for it."""


def _added(used: Usage, more: Usage | None) -> Usage:
    if more is None:
        return used
    sums = {
        name: mine if new is None else new + (mine or 0)
        for name in ("prompt_tokens", "completion_tokens", "cost")
        for mine, new in [(getattr(used, name), getattr(more, name))]
    }
    return Usage(model=more.model or used.model, **sums)
