"""Write an episode as one JSON document in Harbor's agent trajectory interchange format, ATIF-v1.7.

The system prompt becomes a step with source `system`, and the instruction a step with source `user`. Each turn becomes
two steps with source `agent`: the reply with its reasoning, and a call of the tool `act` with the action and the
observation as its result. NeMo Gym's `reverify` refuses a step with both a message and a tool call. It also refuses an
observation without a tool call, so `act` is called with a null action if the reply had no action.
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
            "properties": {"action": {"type": ["string", "null"]}},
            "required": ["action"],
        },
    },
}


def file_name(episode: Episode) -> str:
    """Return a file name without path separators: `babyai-open-000-0.json`."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", episode.task_id).lstrip(".-") + f"-{episode.sample}.json"


def _without_missing(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def trajectory(episode: Episode, manifest: Manifest) -> dict[str, Any]:
    """Return one episode as an ATIF document."""
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
        steps += (
            {"step_id": i, "timestamp": at, "source": "agent"} | step
            for i, step in enumerate(_steps_of(turn), len(steps) + 1)
        )
    notes = (
        []
        if whole
        else [
            "the prompt file of this run was not found: only the goal and the first observation are exported"
        ]
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


def _steps_of(turn: Turn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two steps: the reply, and the action with its observation."""
    call = f"turn-{turn.turn}"
    metrics = {"prompt_tokens": turn.prompt_tokens, "completion_tokens": turn.completion_tokens}
    reply = {
        "message": turn.reply,
        "reasoning_content": "\n\n".join(filter(None, (turn.reasoning, turn.thought))) or None,
        "metrics": _without_missing(metrics) or None,
        "llm_call_count": 1,
    }
    action = {
        "message": "",
        "tool_calls": [{"tool_call_id": call, "function_name": TOOL, "arguments": {"action": turn.action}}],
        "observation": {"results": [{"source_call_id": call, "content": turn.observation}]},
        "llm_call_count": 0,
        "extra": {
            "progress": turn.progress,
            "valid": turn.valid,
            "format_errors": list(turn.format_errors),
            "subgoals_completed": list(turn.subgoals_completed),
        },
    }
    return _without_missing(reply), action
