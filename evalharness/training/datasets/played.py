"""Convert an episode to a training conversation, with the messages that the agent received."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from evalharness.records.episode import Episode
from evalharness.results.exports.conversation import USUAL, Protocol, conversation, opening
from evalharness.training.datasets.conversation import Conversation, MarkedMessage, Role
from evalharness.training.datasets.modes import mark_turns


def convert_episode(
    name: str,
    source: str,
    episode: Episode,
    errors: Sequence[tuple[str, ...]],
    *,
    suite_seed: int,
    task_forms: Sequence[str],
    untrained: int = 0,
    protocol: Protocol = USUAL,
    **facts: Any,
) -> Conversation:
    """Return the conversation of the first `len(errors)` turns; `errors` has each turn's kinds of error.

    The first `untrained` turns and turns with a refused action are not trained. `facts` are added to the metadata.
    """
    head = len(opening(episode, protocol)[0])
    chat = conversation(episode, protocol)[: head + 2 * len(errors) - 1]
    messages = [MarkedMessage(cast(Role, message["role"]), message["content"]) for message in chat]
    for number, error in enumerate(errors):
        at = head + 2 * number
        trained = number >= untrained and episode.turns[number].valid
        messages[at] = replace(messages[at], loss=trained, error=error)
    turns = episode.turns[: len(errors)]
    return Conversation(
        id=name,
        source=source,
        world=episode.family,
        task_hash=episode.task_hash,
        messages=mark_turns(messages),
        metadata={
            "task_id": episode.task_id,
            "suite_seed": suite_seed,
            "task_forms": list(task_forms),
            "kind": episode.kind,
            "goal": episode.goal,
            "progress": [round(turn.progress, 6) for turn in turns],
            "valid": [turn.valid for turn in turns],
            **facts,
        },
    )
