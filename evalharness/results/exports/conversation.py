"""The chat of a stored episode, message by message, as the model was sent it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evalharness.envs.base import MAX_TURNS
from evalharness.protocol import react, tools
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import AS_WRITTEN, Adaptation, Message
from evalharness.records.episode import Episode, Turn
from evalharness.records.manifest import Manifest


@dataclass(frozen=True)
class Protocol:
    """What of a run's configuration its conversations depend on."""

    limits: Mapping[str, int] = field(default_factory=dict)
    """Family -> turns of its episodes at most."""
    keep_thinking: bool = False
    acts_by_tools: bool = False
    adaptation: Adaptation = AS_WRITTEN

    @classmethod
    def of(cls, manifest: Manifest) -> Protocol:
        return cls(
            manifest.turn_limits,
            manifest.options.get("history_thinking") == "keep",
            manifest.config.acts_by_tools,
            Adaptation.of(manifest.options),
        )


USUAL = Protocol()


def opening(episode: Episode, protocol: Protocol = USUAL) -> tuple[list[Message], bool]:
    """What comes before the first reply, and whether it is whole.

    Run folders keep the hash of a prompt file, not its text: where the file at hand is another one (or the family is
    not installed), only the goal and the first observation are known.
    """
    found = played_prompt(
        episode.family,
        episode.kind,
        episode.perturbation,
        episode.prompt_hash,
        adaptation=protocol.adaptation,
    )
    if found is None:
        text = f"Goal: {episode.goal}\nObservation: {episode.first_observation}"
        return [{"role": "user", "content": text}], False
    prompt, surface = found
    if protocol.acts_by_tools:
        prompt = prompt.for_tools(tools.FORMAT_RULES)
    limit = protocol.limits.get(episode.family, MAX_TURNS)
    goal, observation = episode.goal, episode.first_observation
    return prompt.messages(surface.perturbed, goal, observation, max_turns=limit), True


def _turn_messages(turn: Turn, protocol: Protocol) -> list[Message]:
    truncated = turn.finish_reason == "length"
    if protocol.acts_by_tools:
        parsed = tools.parse_calls(turn.reply, turn.calls, reasoning=turn.reasoning, truncated=truncated)
    else:
        parsed = react.parse(turn.reply, truncated=truncated)
    # The turn's reasoning is that of a block in the reply, too, where there is one: then it must not count twice.
    parsed, keep = replace(parsed, reasoning=turn.reasoning), protocol.keep_thinking
    if protocol.acts_by_tools:
        return tools.turn_messages(parsed, turn.calls, turn.observation, keep_thinking=keep)
    return react.turn_messages(parsed, turn.observation, keep_thinking=keep)


def conversation(episode: Episode, protocol: Protocol = USUAL) -> list[Message]:
    """Opening, then each reply and the observation that answered it. Turns that a full context dropped are there."""
    messages, _ = opening(episode, protocol)
    for turn in episode.turns:
        messages += _turn_messages(turn, protocol)
    return messages


def as_text(message: Message) -> Message:
    """A message with its tool call written out, for formats that want text alone."""
    calls = [f"{c['function']['name']}({c['function']['arguments']})" for c in message.get("tool_calls", ())]
    role = "user" if message["role"] == "tool" else message["role"]
    return {"role": role, "content": "\n".join(filter(None, (message["content"], *calls)))}
