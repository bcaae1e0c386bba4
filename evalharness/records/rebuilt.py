"""A recorded episode as its agent saw it: every request made again from the record, every reply read again. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from evalharness.agents.base import Agent, ContextFullError, EpisodeStart, Request, Said, TrialEnd
from evalharness.agents.guard import Guarded
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.protocol.react import STOP_SEQUENCES, FormatError, ParsedReply, reasoning_in
from evalharness.records.episode import Episode, FurtherCall, Trial, Turn


@dataclass(frozen=True)
class RebuiltTurn:
    turn: Turn
    requests: tuple[Request, ...]
    """Of the turn's calls, the one for the action last."""
    sent: tuple[str, ...]
    """Hash of each request's messages, as `Turn.sent` and `FurtherCall.sent` have it."""
    parsed: ParsedReply
    said: Said


class NotRebuiltError(ValueError):
    """The agent makes of the record another course of events than the recorded one."""


def episode_start(
    episode: Episode,
    prompt: PromptFile,
    actions: ActionSurface,
    max_turns: int,
    *,
    keep_thinking: bool,
    trial: int = 0,
) -> EpisodeStart:
    """`prompt`: of the episode's kind, in its words."""
    return EpisodeStart(
        episode.task_id, episode.family, episode.kind, episode.goal, episode.first_observation, max_turns,
        prompt, actions, episode.first_valid_actions, keep_thinking, trial,
    )  # fmt: skip


def rebuild(agent: Agent, start: EpisodeStart, episode: Episode) -> Iterator[RebuiltTurn]:
    """The turns of the last trial, those of earlier ones gone through before. Raises NotRebuiltError, and
    AgentFaultError of an agent that fails."""
    guarded = Guarded(agent)
    for number, trial in enumerate(episode.earlier):
        guarded.start(_of_trial(start, number))
        for _ in _turns(guarded, trial):
            pass
        again = guarded.reflect(TrialEnd(trial.success, trial.progress, trial.ended_by))
        if again is None or not trial.further:
            raise NotRebuiltError(f"trial {number + 1} is not followed by another")
        guarded.read(said_of(trial.further[-1]))
    guarded.start(_of_trial(start, len(episode.earlier)))
    yield from _turns(guarded, episode)


def _of_trial(start: EpisodeStart, trial: int) -> EpisodeStart:
    return replace(start, trial=trial)


def _turns(guarded: Guarded, part: Trial | Episode) -> Iterator[RebuiltTurn]:
    trims = {(trim.turn, trim.call): trim.dropped for trim in part.trims}
    for number, turn in enumerate(part.turns, 1):
        requests, sent = list[Request](), list[str]()
        calls: tuple[FurtherCall | Turn, ...] = (*turn.further, turn)
        parsed: ParsedReply | None = None
        for position, call in enumerate(calls):
            request = guarded.request()
            if dropped := trims.get((number, position)):
                _shorten(guarded, dropped)
                request = guarded.request()
            requests.append(Request([*request.messages], request.purpose))
            sent.append(guarded.sent)
            parsed = guarded.read(said_of(call))
            if (parsed is None) != isinstance(call, FurtherCall):
                raise NotRebuiltError(f"turn {number}: call {position + 1} is read otherwise than it was")
        assert parsed is not None
        yield RebuiltTurn(turn, tuple(requests), tuple(sent), parsed, said_of(turn))
        guarded.observe(turn.observation, turn.valid_actions)


def _shorten(guarded: Guarded, dropped: int) -> None:
    """As often as the loop did: a record sums what went before one request."""
    gone = 0
    while gone < dropped:
        try:
            gone += guarded.shorten()
        except ContextFullError:
            break
    if gone != dropped:
        raise NotRebuiltError(f"{dropped} turns were left out, and the agent leaves out {gone}")


def said_of(call: Turn | FurtherCall) -> Said:
    """A recorded reply as the agent was given it. Which stop sequence ended one is not kept; that one did, is."""
    reasoning = call.reasoning
    if (block := reasoning_in(call.reply)) and reasoning.endswith(block):
        reasoning = reasoning.removesuffix(block).strip()
    if isinstance(call, FurtherCall):
        stopped = call.stopped_by
    else:
        invented = FormatError.INVENTED_OBSERVATION in call.format_errors
        stopped = STOP_SEQUENCES[0] if invented else None
    return Said(call.reply, reasoning, call.calls, stopped, call.finish_reason == "length")
