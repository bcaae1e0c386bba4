"""Read the steps of a document in Harbor's agent trajectory interchange format (ATIF) as messages.

`results.exports.atif` writes a turn as two steps: a step with the reply, and a step that calls the tool `act`. Other
programs write the reply and the call in one step. An observation answers the call in the same step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalharness.results.exports.atif import TOOL
from evalharness.training.datasets.conversation import UnfitError


def is_atif(record: Mapping[str, Any]) -> bool:
    return str(record.get("schema_version", "")).startswith("ATIF-")


def read_steps(steps: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages. Raises UnfitError for other tools, several calls in a step, or copied steps."""
    messages: list[dict[str, Any]] = []
    for step in steps:
        if step.get("is_copied_context"):
            raise UnfitError("a step is copied from an earlier trajectory")
        calls = step.get("tool_calls") or []
        if step.get("message") or not calls:
            thought = step.get("reasoning_content")
            messages.append({"role": step.get("source"), "content": step.get("message")})
            messages[-1] |= {"reasoning": thought} if thought else {}
        elif not messages or messages[-1]["role"] != "agent":
            messages.append({"role": "agent", "content": ""})
        if calls and (action := _read_action(calls)) is not None:
            messages[-1]["action"] = action
        results = (step.get("observation") or {}).get("results") or []
        if results:
            texts = [result.get("content") for result in results]
            if not all(isinstance(text, str) for text in texts):
                raise UnfitError("an observation is no text")
            messages.append({"role": "environment", "observation": "\n".join(texts)})
    return messages


def _read_action(calls: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the action of a step's tool call; None if the call has no action."""
    if len(calls) > 1:
        raise UnfitError("a step calls several tools")
    name, arguments = calls[0].get("function_name"), calls[0].get("arguments")
    if name != TOOL or not isinstance(arguments, Mapping):
        raise UnfitError(f"a step calls another tool than `{TOOL}`")
    action = arguments.get("action", arguments.get("command"))
    if action is not None and not isinstance(action, str):
        raise UnfitError("an action is no text")
    return action
