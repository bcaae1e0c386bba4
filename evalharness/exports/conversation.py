"""The chat of a stored episode, message by message, as the model was sent it."""

from __future__ import annotations

from evalharness.protocol import react
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode


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


def kept_reply(reply: str, finish_reason: str) -> str:
    """The part of a raw reply that stayed in the conversation."""
    # Some servers refuse an empty assistant message; the loop sends the same words.
    return react.parse(reply, truncated=finish_reason == "length").kept or "(no reply)"


def conversation(episode: Episode) -> list[Message]:
    """Opening, then each reply and the observation that answered it. Turns that a full context dropped are there."""
    messages, _ = opening(episode)
    for turn in episode.turns:
        messages.append({"role": "assistant", "content": kept_reply(turn.reply, turn.finish_reason)})
        messages.append({"role": "user", "content": f"Observation: {turn.observation}"})
    return messages
