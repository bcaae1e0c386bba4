"""Harbor's agent trajectory interchange format, ATIF-v1.7: an episode is one JSON document.

The system text and the instruction are steps of the system and the user; each turn is a step of the agent with its
message, its reasoning, its action as a call of the tool `act`, and the observation as that call's result.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from evalharness.base.version import __version__
from evalharness.records.episode import Episode, Turn
from evalharness.records.manifest import Manifest
from evalharness.results.exports.conversation import Protocol, opening

VERSION = "ATIF-v1.7"
TOOL = "act"
_TOOL_DEFINITION = {
    "type": "function",
    "function": {
        "name": TOOL,
        "description": "Carry out one action in the text environment.",
        "parameters": {
            "type": "object",
            "properties": {"action": {"type": "string"}},
            "required": ["action"],
        },
    },
}


def file_name(episode: Episode) -> str:
    """`babyai-open-000-0.json`, nothing in it that a path could mean."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", episode.task_id).lstrip(".-") + f"-{episode.sample}.json"


def _without_missing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def trajectory(episode: Episode, manifest: Manifest) -> dict[str, Any]:
    """The document of one episode."""
    messages, whole = opening(episode, Protocol.of(manifest))
    begun = datetime.fromtimestamp(episode.started, UTC).isoformat()
    steps: list[dict[str, Any]] = [
        {"step_id": i, "timestamp": begun, "source": message["role"], "message": message["content"]}
        for i, message in enumerate(messages, 1)
    ]
    elapsed = 0.0
    for turn in episode.turns:
        elapsed += turn.policy_s + turn.environment_s + turn.worker_s
        at = datetime.fromtimestamp(episode.started + elapsed, UTC).isoformat()
        steps.append({"step_id": len(steps) + 1, "timestamp": at} | _step(turn))
    notes = (
        []
        if whole
        else ["the prompt file of this run is not at hand: only goal and first observation stand here"]
    )
    notes += [
        f"before turn {trim.turn} the {trim.dropped} oldest turns left the context" for trim in episode.trims
    ]
    document = {
        "schema_version": VERSION,
        "session_id": manifest.digest[:16],
        "trajectory_id": f"{manifest.digest[:16]}/{episode.task_id}/{episode.sample}",
        "agent": {
            "name": "evalharness",
            "version": __version__,
            "model_name": manifest.model_name,
            "tool_definitions": [_TOOL_DEFINITION],
        },
        "steps": steps,
        "notes": "; ".join(notes) or None,
        "final_metrics": {
            "total_prompt_tokens": episode.prompt_tokens,
            "total_completion_tokens": episode.completion_tokens,
            "total_steps": len(steps),
        },
        "extra": {
            **episode.outcome,
            "ended_by": episode.ended_by,
            "task_hash": episode.task_hash,
            "prompt_hash": episode.prompt_hash,
        },
    }
    return _without_missing(document)


def _step(turn: Turn) -> dict[str, Any]:
    call = f"turn-{turn.turn}"
    acted = turn.action is not None
    result = {"source_call_id": call if acted else None, "content": turn.observation}
    metrics = {"prompt_tokens": turn.prompt_tokens, "completion_tokens": turn.completion_tokens}
    return _without_missing(
        {
            "source": "agent",
            "message": turn.reply,
            "reasoning_content": "\n\n".join(filter(None, (turn.reasoning, turn.thought))) or None,
            "tool_calls": [
                {"tool_call_id": call, "function_name": TOOL, "arguments": {"action": turn.action}}
            ]
            if acted
            else None,
            "observation": {"results": [_without_missing(result)]},
            "metrics": _without_missing(metrics) or None,
            "extra": {
                "progress": turn.progress,
                "valid": turn.valid,
                "format_errors": list(turn.format_errors),
                "subgoals_completed": list(turn.subgoals_completed),
            },
        }
    )
