"""Send an agent's requests to a model and read the replies, until the agent has an action."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from evalharness.agents.base import ContextFullError, ModelReply, Request
from evalharness.agents.guard import Guarded
from evalharness.models.base import ContextOverflowError, Player, Reply, RequestForm
from evalharness.models.completion import RequestRefusedError
from evalharness.protocol.react import ParsedReply
from evalharness.records.episode import FurtherCall, Trim

MOST_CALLS = 16
"""Maximum number of model calls in one turn. An agent that needs more would never end the turn."""
_MOST_TRIMS = 64
"""Maximum number of times that the agent may shorten one request because it exceeds the model's context."""


@dataclass(frozen=True)
class TurnReply:
    """The reply that gave a turn's action, and the earlier model calls of the turn."""

    reply: Reply
    parsed: ParsedReply
    further: tuple[FurtherCall, ...]
    sent: str
    policy_s: float
    """Seconds of all calls of the turn, including waiting for a slot, failed tries and the pauses after them."""
    prompt_cut: bool
    """Whether the server cut off a part of the request, because the context is full."""


@dataclass
class Dialogue:
    agent: Guarded
    player: Player
    trims: list[Trim] = field(default_factory=list)
    further: list[FurtherCall] = field(default_factory=list)
    """Calls of the current turn that have not given an action."""
    plan: str | None = None
    """Name of the reference plan that the policy follows (`TextEnv.reference_plans`), if any."""
    _answered: int = 0
    """Characters of the last request that the server answered."""
    _prompt: int = 0
    """Tokens of the last request that the server answered; 0 if not known."""
    _cut: bool = False
    """Whether the server cut off a part of the last request: it extends the previous one but has no more tokens."""

    async def ask(self, turn: int) -> TurnReply:
        """Send requests until the agent has read a reply that ends the turn.

        Raises ContextFullError, ContentFilteredError, PolicyStoppedError, AgentFaultError and infrastructure errors."""
        began = time.perf_counter()
        call = shortened = 0
        refused: RequestRefusedError | None = None
        while call < MOST_CALLS:
            request = self.agent.request()
            try:
                reply = await self.player.reply(request.messages, turn=turn, form=form_of(request, call))
            except ContextOverflowError:
                self.trims.append(Trim(turn, self.agent.shorten(), call))
            except RequestRefusedError as error:
                # Servers report a full context in many ways. If a shorter request is accepted, the context was full.
                if refused or not (error.server_error.may_be_length and self.agent.size > self._answered > 0):
                    raise (refused or error) from None
                refused = error
                try:
                    self.trims.append(Trim(turn, self.agent.shorten(), call))
                except ContextFullError:
                    raise error from None
            else:
                self._note_answer(reply)
                parsed = self.agent.read(to_model_reply(reply))
                if parsed is not None:
                    further, self.further = tuple(self.further), []
                    policy_s = time.perf_counter() - began
                    return TurnReply(reply, parsed, further, self.agent.sent, policy_s, self._cut)
                self.further.append(self._further(request, reply))
                call, shortened, refused = call + 1, 0, None
                continue
            shortened += 1
            if shortened == _MOST_TRIMS:
                raise self.agent.fault(f"its request of turn {turn} is still too long")
        raise self.agent.fault(f"turn {turn} called the model {MOST_CALLS} times without an action")

    def _note_answer(self, reply: Reply) -> None:
        prompt = reply.prompt_tokens or 0
        if (cached := reply.cached_tokens or 0) > prompt:  # some servers count cached tokens separately
            prompt += cached
        self._cut = self.agent.extends and 0 < prompt <= self._prompt
        self._answered, self._prompt = self.agent.size, prompt
        self.plan = reply.plan or self.plan

    def _further(self, request: Request, reply: Reply) -> FurtherCall:
        return FurtherCall(
            purpose=request.purpose,
            reply=reply.text,
            reasoning=reply.reasoning,
            calls=reply.calls,
            finish_reason=reply.finish_reason,
            stopped_by=reply.stopped_by,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cached_tokens=reply.cached_tokens,
            reasoning_tokens=reply.reasoning_tokens,
            latency_s=reply.latency,
            failed_tries=reply.failed_tries,
            sent=self.agent.sent,
        )


def form_of(request: Request, call: int) -> RequestForm:
    return RequestForm(
        stop=request.stop,
        max_tokens=request.max_tokens,
        temperature=request.temperature,
        tools=request.tools,
        nonce=f"0.{call}" if call else "",
    )


def to_model_reply(reply: Reply) -> ModelReply:
    """Return what an agent may read of a reply."""
    return ModelReply(
        reply.text, reply.reasoning.strip(), reply.calls, reply.stopped_by, reply.finish_reason == "length"
    )
