"""JSON schemas of a model's replies, for servers with structured output."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_FLAG = {"type": "boolean"}


def _object(properties: dict[str, Any], optional: Collection[str] = ()) -> dict[str, Any]:
    """Return an object's schema. Guided decoding writes the keys in the order of `properties`."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


SCRIPT: dict[str, Any] = {
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"information": _TEXT, "location": _TEXT, "relative location": _TEXTS},
            "additionalProperties": {"anyOf": [_TEXT, {"$ref": "#/$defs/place"}]},
        }
    },
    **_object(
        {
            "Thought": _TEXT,
            "Environment": _object(
                {
                    "initial state": _TEXT,
                    "places and objects": {
                        "type": "object",
                        "additionalProperties": {"$ref": "#/$defs/place"},
                    },
                    "player": _object({"information": _TEXT}),
                }
            ),
            # The model writes the keys in this order: the environment, a task in this environment, then the actions.
            "Goal": _TEXT,
            "Completion Conditions": _TEXTS,
            "Available Actions": {
                "type": "object",
                "additionalProperties": _object(
                    # in the order of the paper's appendix G
                    {
                        "description": _TEXT,
                        "special format": _TEXT,
                        "verification code": _TEXT,
                        "parameters": {"type": "object", "additionalProperties": _TEXTS},
                    },
                    optional=("description", "special format"),
                ),
            },
        }
    ),
}

TRAJECTORY: dict[str, Any] = _object(
    {
        # The list is inside an object, because several servers refuse a schema with a list at the root.
        "trajectory": {
            "type": "array",
            "items": {
                "anyOf": [
                    _object(
                        {
                            "turn": {"type": "integer"},
                            "role": {"const": "DM"},
                            "Thought": _TEXT,
                            "Observation": _TEXT,
                            "parameter_error": _FLAG,
                            "place_error": _FLAG,
                            "logic_error": _FLAG,
                            "progress_rate": {"type": "number"},
                            "finished": _FLAG,
                        }
                    ),
                    _object(
                        {
                            "turn": {"type": "integer"},
                            "role": {"const": "Player"},
                            "Thought": _TEXT,
                            "Action": _TEXT,
                        }
                    ),
                ]
            },
        }
    }
)


def make_response_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `response_format` of the chat completions API. `strict` is not set, because strict schemas forbid keys
    that a script chooses, such as names of places."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
