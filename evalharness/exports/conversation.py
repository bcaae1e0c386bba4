"""The chat of a stored episode, message by message, as the model was sent it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalharness.protocol import react
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode, Turn


def opening(episode: Episode) -> tuple[list[Message], bool]:
    """What comes before the first reply, and whether it is whole.

    Run folders keep the hash of a prompt file, not its text: where the file at hand is another one (or the family is
    not installed), only the goal and the first observation are known.
    """
    found = played_prompt(episode.family, episode.kind, episode.perturbation, episode.prompt_hash)
    if found is None:
        text = f"Goal: {episode.goal}\nObservation: {episode.first_observation}"
        return [{"role": "user", "content": text}], False
    prompt, voice = found
    return prompt.messages(voice.surface, episode.goal, episode.first_observation), True


def kept_reply(turn: Turn, *, keep_thinking: bool = False) -> str:
    """The part of a raw reply that stayed in the conversation."""
    # The turn's reasoning is that of a block in the reply, too, where there is one: then it must not count twice.
    parsed = react.parse(turn.reply, truncated=turn.finish_reason == "length")
    return replace(parsed, reasoning=turn.reasoning).spoken(keep_thinking=keep_thinking)


def conversation(episode: Episode, *, keep_thinking: bool = False) -> list[Message]:
    """Opening, then each reply and the observation that answered it. Turns that a full context dropped are there.

    `keep_thinking`: the run was one with `--history-thinking keep`."""
    messages, _ = opening(episode)
    for turn in episode.turns:
        messages.append({"role": "assistant", "content": kept_reply(turn, keep_thinking=keep_thinking)})
        messages.append({"role": "user", "content": f"Observation: {turn.observation}"})
    return messages


def keeps_thinking(manifest: Mapping[str, Any]) -> bool:
    """Whether reasoning stayed in the conversations of this run."""
    return bool(manifest["identity"]["config"].get("history_thinking") == "keep")
