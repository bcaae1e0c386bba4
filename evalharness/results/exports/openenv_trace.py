"""OpenEnv's training traces: JSON lines, an episode a line, with the tokens as the model's server numbered them.

Nothing is tokenized again: a turn whose tokens were not recorded is left out. The loss mask is 0 over the prompt and 1
over what the model generated. What an episode earned is in each turn's metadata, for the format has no place for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.records.tokens import StoredTokens, TurnTokens
from evalharness.results.exports.conversation import Protocol, conversation, opening

SCHEMA = 1


def trace(episode: Episode, tokens: Iterable[TurnTokens | None], manifest: Manifest) -> dict[str, Any]:
    """A `TrainingTrace`."""
    return {"schema_version": SCHEMA, "turns": list(_turns(episode, tokens, manifest))}


def _turns(
    episode: Episode, tokens: Iterable[TurnTokens | None], manifest: Manifest
) -> Iterator[dict[str, Any]]:
    protocol = Protocol.of(manifest)
    messages, head = conversation(episode, protocol), len(opening(episode, protocol)[0])
    dropped, dropped_before = 0, episode.dropped_before
    for index, (turn, known) in enumerate(zip(episode.turns, tokens, strict=False)):
        dropped += dropped_before.get(turn.turn, 0)
        if known is None or not known.prompt or not known.completion:
            continue
        reply = head + 2 * index
        yield {
            "node_id": f"{manifest.digest[:16]}/{episode.task_id}/{episode.sample}/{turn.turn}",
            "prompt_token_ids": list(known.prompt),
            "completion_token_ids": list(known.completion),
            "per_token_logps": list(known.logprobs),
            "loss_mask": [0] * len(known.prompt) + [1] * len(known.completion),
            "request": {"messages": messages[:head] + messages[head + 2 * dropped : reply]},
            "response": {
                "choices": [
                    {
                        "message": {"role": "assistant", "content": turn.reply},
                        "finish_reason": turn.finish_reason,
                    }
                ]
            },
            "metadata": {
                "index": index,
                "model": manifest.model_name,
                "progress_gain": turn.progress - (episode.turns[index - 1].progress if index else 0.0),
                "valid": turn.valid,
                "format_errors": list(turn.format_errors),
                "episode": episode.outcome | {"turns": len(episode.turns), "ended_by": episode.ended_by},
            },
        }


def write(target: Path, folder: Path, episodes: Iterable[Episode], manifest: Manifest) -> tuple[int, int]:
    """Returns (episodes, turns) written; an episode without any recorded turn is left out.

    Raises UserError where no tokens were recorded.
    """
    tokens = StoredTokens(folder)
    if not tokens.path.exists():
        raise UserError(f"{folder} holds no tokens; record them with: evalharness run ... --record-tokens")
    count = turns = 0
    with target.open("w", encoding="ascii") as file:
        for episode in episodes:
            found = trace(episode, tokens.of(episode.task_id, episode.sample), manifest)
            if found["turns"]:
                file.write(json.dumps(found, separators=(",", ":")) + "\n")
                count, turns = count + 1, turns + len(found["turns"])
    return count, turns
