"""JSON lines of chats, `{"messages": [...], "metadata": {...}}`: what fine-tuning takes."""

from __future__ import annotations

import json
from typing import Any

from evalharness.exports.conversation import conversation
from evalharness.records.episode import Episode


def metadata(episode: Episode) -> dict[str, Any]:
    return {
        "task_id": episode.task_id,
        "family": episode.family,
        "sample": episode.sample,
        "perturbation": episode.perturbation,
        "success": episode.success,
        "progress": episode.progress,
        "turns": len(episode.turns),
    }


def line(episode: Episode, *, keep_thinking: bool = False) -> str:
    """The chat ends with the last reply: what the world answered to it, nobody read."""
    messages = conversation(episode, keep_thinking=keep_thinking)
    if episode.turns:
        messages.pop()
    return json.dumps({"messages": messages, "metadata": metadata(episode)}, ensure_ascii=True) + "\n"
