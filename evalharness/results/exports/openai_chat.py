"""Write chats as JSON lines for fine-tuning: `{"messages": [...], "metadata": {...}}`."""

from __future__ import annotations

import json
from typing import Any

from evalharness.records.episode import Episode
from evalharness.results.exports.conversation import USUAL, Protocol, conversation


def metadata(episode: Episode) -> dict[str, Any]:
    names = ("task_id", "family", "sample", "perturbation", "success", "progress")
    return {name: getattr(episode, name) for name in names} | {"turns": len(episode.turns)}


def line(episode: Episode, protocol: Protocol = USUAL) -> str:
    """Return an episode as one line. The chat omits the last observation, because the model never read it."""
    messages = conversation(episode, protocol)
    if episode.turns:
        messages.pop()
    return json.dumps({"messages": messages, "metadata": metadata(episode)}, ensure_ascii=True) + "\n"
