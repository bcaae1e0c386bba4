"""The samples of a run: an episode is a line for its success and one for its progress."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from evalharness.protocol.prompt import Message
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.results.exports.conversation import Protocol, conversation
from evalharness.results.exports.every_eval_ever.ids import MEASURES, SCHEMA, Ids, strings


def samples(episode: Episode, manifest: Manifest, ids: Ids) -> Iterator[dict[str, Any]]:
    protocol = Protocol.of(manifest)
    messages = conversation(episode, protocol)
    raw = f"Goal: {episode.goal}\nObservation: {episode.first_observation}"
    reference = list(episode.subgoals)
    last = max((i for i, message in enumerate(messages) if message["role"] == "assistant"), default=None)
    action = next((turn.action for turn in reversed(episode.turns) if turn.action is not None), "")
    calls = sum(len(turn.calls) for turn in episode.turns)
    common: dict[str, Any] = {
        "schema_version": SCHEMA,
        "evaluation_id": ids.evaluation,
        "model_id": ids.about.model_id,
        "sample_id": f"{episode.task_id}#{episode.sample}",
        "sample_hash": hashlib.sha256((raw + "".join(reference)).encode(errors="surrogatepass")).hexdigest(),
        "interaction_type": "agentic" if protocol.calls_tools else "multi_turn",
        "input": {"raw": raw, "reference": reference},
        "messages": list(_messages(messages, episode)),
        "answer_attribution": []
        if last is None
        else [
            {
                "turn_idx": last,
                "source": f"messages[{last}].content",
                "extracted_value": action,
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ],
        "token_usage": {
            "input_tokens": episode.prompt_tokens,
            "output_tokens": episode.completion_tokens,
            "total_tokens": episode.prompt_tokens + episode.completion_tokens,
            "input_tokens_cache_read": episode.cached_tokens,
            "reasoning_tokens": episode.reasoning_tokens,
        },
        "performance": {"latency_ms": 1000 * max(episode.wall_s, 0.0)},
        "metadata": strings(
            {
                "family": episode.family, "kind": episode.kind, "difficulty": episode.difficulty,
                "labels": episode.labels, "perturbation": episode.perturbation, "ended_by": episode.ended_by,
                "solved": episode.solved, "task_hash": episode.task_hash,
            }
        ),
    }  # fmt: skip
    turns = {"num_turns": len(episode.turns)} if episode.turns else {}
    title = manifest.titles.get(episode.family, episode.family)
    for measure, score in zip(MEASURES, (float(episode.success), float(episode.progress)), strict=True):
        yield common | {
            "evaluation_name": f"{title} {measure.replace('_', ' ')}",
            "evaluation_result_id": f"{episode.family}/{measure}",
            "evaluation": {"score": score, "is_correct": episode.success, **turns, "tool_calls_count": calls},
        }


def _messages(messages: Iterable[Message], episode: Episode) -> Iterator[dict[str, Any]]:
    turns = iter(episode.turns)
    for index, message in enumerate(messages):
        shown: dict[str, Any] = {"turn_idx": index, "role": message["role"], "content": message["content"]}
        if message["role"] == "assistant" and (turn := next(turns, None)) is not None and turn.reasoning:
            shown["reasoning_trace"] = turn.reasoning
        if calls := message.get("tool_calls"):
            shown["tool_calls"] = [
                {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "arguments": strings(json.loads(call["function"]["arguments"])),
                }
                for call in calls
            ]
        if "tool_call_id" in message:
            shown["tool_call_id"] = [message["tool_call_id"]]
        yield shown
