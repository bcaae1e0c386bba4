"""Ask a model some turns of a finished run again (`--repeat-check`), and count the greedy replies that differ."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator
from pathlib import Path

from evalharness.base.errors import InfrastructureError
from evalharness.models.endpoint import TURN_FORM
from evalharness.models.replicas import Replicas
from evalharness.play.dialogue import form_of, to_model_reply
from evalharness.play.episodes import Work
from evalharness.records.episode import Episode
from evalharness.records.manifest import RepeatCheck
from evalharness.records.rebuilt import RebuiltTurn, episode_start, rebuild
from evalharness.records.store import read_episodes

TurnKey = tuple[str, int, int]
"""(task id, sample, turn)"""


async def check_repeats(work: Work, folder: Path, model: Replicas) -> RepeatCheck:
    """Ask `Work.repeat_turns` turns of the run again, one at a time, and count replies that differ. The turns are
    chosen by a hash of their names, so the choice does not depend on the order in which episodes ended. Stop early if
    the server fails or the time limit is reached."""
    asked = differed = 0
    for episode, rebuilt in _draw_turns(work, folder):
        request, turn = rebuilt.requests[-1], rebuilt.turn
        if work.clock.stop_reason():
            break
        player = model.conversation(episode.task_id, episode.sample, TURN_FORM)
        try:
            reply = await player.reply(
                request.messages, turn=turn.turn, form=form_of(request, len(turn.further))
            )
        except InfrastructureError:
            break
        again, before = to_model_reply(reply), rebuilt.said
        asked += 1
        differed += (again.text, again.reasoning) != (before.text, before.reasoning)
    return RepeatCheck(asked=asked, differed=differed)


def _draw_turns(work: Work, folder: Path) -> Iterator[tuple[Episode, RebuiltTurn]]:
    """Yield chosen turns whose request can be rebuilt exactly and had temperature 0."""
    names = (
        (episode.task_id, episode.sample, turn.turn)
        for episode in read_episodes(folder)
        for turn in episode.turns
    )
    drawn = set(heapq.nsmallest(work.repeat_turns, names, key=_rank))
    for episode in read_episodes(folder):
        wanted = {
            turn for task_id, sample, turn in drawn if (task_id, sample) == (episode.task_id, episode.sample)
        }
        for rebuilt in _rebuild(work, episode) if wanted else ():
            if (
                rebuilt.turn.turn in wanted
                and not rebuilt.has_other_messages
                and not rebuilt.requests[-1].temperature
            ):
                yield episode, rebuilt


def _rank(name: TurnKey) -> bytes:
    return hashlib.sha256(repr(name).encode()).digest()


def _rebuild(work: Work, episode: Episode) -> Iterator[RebuiltTurn]:
    surface = work.surfaces[episode.family].for_game(episode.words)
    prompt = surface.prompt(work.prompts[episode.family].for_kind(episode.kind))
    limit = work.agent.turn_limit(work.specs[episode.family])
    keep = work.agent.keeps_thinking
    start = episode_start(episode, prompt, surface.perturbed, limit, keep_thinking=keep)
    return rebuild(work.agent.chosen.make(), start, episode)
