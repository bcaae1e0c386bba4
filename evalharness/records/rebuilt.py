"""Replay a recorded episode through its agent: make every request and read every reply again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evalharness.agents.base import Agent, ContextFullError, EpisodeStart, ModelReply, Request
from evalharness.agents.guard import Guarded
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import STOP_SEQUENCES, FormatError, ParsedReply, reasoning_in
from evalharness.records.episode import Episode, FurtherCall, Turn


@dataclass(frozen=True)
class RebuiltTurn:
    turn: Turn
    requests: tuple[Request, ...]
    """Requests of the turn; the last one asks for the action."""
    sent: tuple[str, ...]
    """Hash of the rebuilt messages of each request, to compare with `Turn.sent` and `FurtherCall.sent`."""
    parsed: ParsedReply
    correction: str
    """Observation for a reply without an action; empty for other replies."""
    said: ModelReply

    @property
    def has_other_messages(self) -> bool:
        """Whether the recorded messages differ from those that the agent makes; false for a record without hashes."""
        recorded = [*(call.sent for call in self.turn.further), self.turn.sent]
        return any(known not in (None, sent) for known, sent in zip(recorded, self.sent, strict=True))


class NotRebuiltError(ValueError):
    """The agent does not reproduce the recorded episode."""


def episode_start(
    episode: Episode,
    prompt: PromptFile,
    actions: ActionSurface,
    max_turns: int,
    *,
    keep_thinking: bool,
) -> EpisodeStart:
    """Return the start of the recorded episode. `prompt`: prompt file for the episode's kind and perturbation."""
    return EpisodeStart(
        episode.task_id, episode.family, episode.kind, episode.goal, episode.first_observation, max_turns,
        prompt, actions, episode.first_valid_actions, keep_thinking,
    )  # fmt: skip


def rebuild(
    agent: Agent, start: EpisodeStart, episode: Episode, *, compare: bool = False
) -> Iterator[RebuiltTurn]:
    """Yield the episode's turns. `compare`: also compare the messages of an unfinished turn with the record.

    Raise NotRebuiltError if the replay differs from the record, AgentFaultError if the agent fails.
    """
    guarded = Guarded(agent)
    guarded.start(start)
    yield from _turns(guarded, episode)
    _replay_calls(guarded, episode, episode.further, compare)


def _replay_calls(guarded: Guarded, episode: Episode, calls: Sequence[FurtherCall], compare: bool) -> None:
    """Replay the calls of an unfinished last turn: its context was full before the agent could ask for an action."""
    for position, call in enumerate(calls):
        _request(guarded, episode, len(episode.turns) + 1, position)
        if compare and call.sent not in (None, guarded.sent):
            raise NotRebuiltError(f"the messages of call {position + 1} after the last turn differ")
        if guarded.read(reply_of(call)) is not None:
            raise NotRebuiltError(f"call {position + 1} after the last turn is read as an action")
    if _count_dropped(episode, len(episode.turns) + 1, len(calls)):  # the last request was too long, too
        _request(guarded, episode, len(episode.turns) + 1, len(calls))


def _turns(guarded: Guarded, episode: Episode) -> Iterator[RebuiltTurn]:
    for number, turn in enumerate(episode.turns, 1):
        requests, sent = list[Request](), list[str]()
        calls: tuple[FurtherCall | Turn, ...] = (*turn.further, turn)
        parsed: ParsedReply | None = None
        for position, call in enumerate(calls):
            request = _request(guarded, episode, number, position)
            requests.append(replace(request, messages=[*request.messages]))
            sent.append(guarded.sent)
            parsed = guarded.read(reply_of(call))
            if (parsed is None) != isinstance(call, FurtherCall):
                raise NotRebuiltError(
                    f"turn {number}: call {position + 1} is read differently from its record"
                )
        assert parsed is not None
        correction = guarded.correction(parsed) if parsed.action is None else ""
        yield RebuiltTurn(turn, tuple(requests), tuple(sent), parsed, correction, reply_of(turn))
        guarded.observe(turn.observation, turn.valid_actions)


def _request(guarded: Guarded, episode: Episode, turn: int, call: int) -> Request:
    """Make a request, and shorten the conversation as recorded."""
    request = guarded.request()
    if dropped := _count_dropped(episode, turn, call):
        _shorten(guarded, dropped)
        request = guarded.request()
    return request


def _count_dropped(episode: Episode, turn: int, call: int) -> int:
    return sum(trim.dropped for trim in episode.trims if (trim.turn, trim.call) == (turn, call))


def _shorten(guarded: Guarded, dropped: int) -> None:
    """Let the agent drop `dropped` old turns. Raise NotRebuiltError if it drops another number of turns."""
    gone = 0
    while gone < dropped:
        try:
            gone += guarded.shorten()
        except ContextFullError:
            break
    if gone != dropped:
        raise NotRebuiltError(f"{dropped} turns were dropped, but the agent now drops {gone}")


def reply_of(call: Turn | FurtherCall) -> ModelReply:
    """Return a recorded reply as the agent received it; reasoning in the reply's text is not given separately."""
    reasoning = call.reasoning
    if (block := reasoning_in(call.reply)) and reasoning.endswith(block):
        reasoning = reasoning.removesuffix(block).strip()
    if isinstance(call, FurtherCall):
        stopped = call.stopped_by
    else:
        invented = FormatError.INVENTED_OBSERVATION in call.format_errors
        stopped = call.stopped_by or (STOP_SEQUENCES[0] if invented else None)
    return ModelReply(call.reply, reasoning, call.calls, stopped, call.finish_reason == "length")
