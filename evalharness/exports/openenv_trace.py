"""OpenEnv's training traces: JSON lines, an episode a line, with the tokens as the model's server numbered them.

Nothing is tokenized again: a turn whose tokens were not recorded is left out. The loss mask is 0 over the prompt and 1
over what the model generated. What an episode earned is in each turn's metadata, for the format has no place for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalharness.errors import UserError
from evalharness.exports.conversation import Protocol, conversation, opening
from evalharness.records.episode import Episode
from evalharness.records.shapes import read_object
from evalharness.records.tokens import TOKENS, TurnTokens, unpack

SCHEMA = 1


class Tokens:
    """The recorded tokens of a run, found by episode. Raises UserError where there are none."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TOKENS
        self._offsets: dict[tuple[str, int], int] = {}
        offset = 0
        try:
            with self._path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        value = read_object(line)
                        self._offsets[value["task_id"], value["sample"]] = offset  # the later of two counts
                    offset += len(line)
        except FileNotFoundError:
            raise UserError(
                f"{folder} holds no tokens; record them with: evalharness run ... --record-tokens"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self._path} is damaged ({error})") from None

    def of(self, episode: Episode) -> list[TurnTokens | None]:
        """A turn's tokens, or None; empty where nothing of the episode was recorded."""
        offset = self._offsets.get((episode.task_id, episode.sample))
        if offset is None:
            return []
        with self._path.open("rb") as file:
            file.seek(offset)
            try:
                return list(unpack(read_object(file.readline())))
            except (ValueError, KeyError, TypeError) as error:
                raise UserError(f"{self._path} is damaged ({error})") from None


def trace(
    episode: Episode, tokens: Iterable[TurnTokens | None], manifest: Mapping[str, Any]
) -> dict[str, Any]:
    """A `TrainingTrace`."""
    return {"schema_version": SCHEMA, "turns": list(_turns(episode, tokens, manifest))}


def _turns(
    episode: Episode, tokens: Iterable[TurnTokens | None], manifest: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    protocol = Protocol.of(manifest)
    messages, head = conversation(episode, protocol), len(opening(episode, protocol)[0])
    dropped, trims = 0, {trim.turn: trim.dropped for trim in episode.trims}
    for index, (turn, known) in enumerate(zip(episode.turns, tokens, strict=False)):
        dropped += trims.get(turn.turn, 0)
        if known is None or not known.prompt or not known.completion:
            continue
        reply = head + 2 * index
        yield {
            "node_id": f"{manifest['digest'][:16]}/{episode.task_id}/{episode.sample}/{turn.turn}",
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
                "model": str(manifest["model_name"]),
                "progress_gain": turn.progress - (episode.turns[index - 1].progress if index else 0.0),
                "valid": turn.valid,
                "format_errors": list(turn.format_errors),
                "episode": episode.outcome | {"turns": len(episode.turns), "ended_by": episode.ended_by},
            },
        }


def write(
    target: Path, folder: Path, episodes: Iterable[Episode], manifest: Mapping[str, Any]
) -> tuple[int, int]:
    """Returns (episodes, turns) written; an episode without any recorded turn is left out."""
    tokens = Tokens(folder)
    count = turns = 0
    with target.open("w", encoding="ascii") as file:
        for episode in episodes:
            found = trace(episode, tokens.of(episode), manifest)
            if found["turns"]:
                file.write(json.dumps(found, separators=(",", ":")) + "\n")
                count, turns = count + 1, turns + len(found["turns"])
    return count, turns
