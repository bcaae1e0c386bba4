"""Where options come from beside flags: a YAML file with `${VAR}`; hints on OPENAI_*."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.yaml_lines import load_yaml

_REFERENCE = re.compile(r"(\$?)\$\{(\w+)\}")


def read_config(path: Path) -> dict[str, Any]:
    """A YAML file of options; `${VAR}` in a value is the environment variable, `$${VAR}` the text `${VAR}` itself.
    Relative to nothing, merged under the flags."""
    data = load_yaml(path, f"configuration file {path}", f"no configuration file {path}")
    if not isinstance(data, dict):
        raise UserError(f"configuration file {path} is not a mapping of options to values")
    return {str(key).replace("-", "_"): _expanded(value, f"{path}, {key}") for key, value in data.items()}


def _expanded(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(each, f"{where}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_expanded(each, where) for each in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        quoted, name = match.groups()
        if quoted:
            return f"${{{name}}}"
        if name not in os.environ:
            raise UserError(
                f"{where}: the environment variable {name} is not set (the text itself: $${{{name}}})"
            )
        return os.environ[name]

    return _REFERENCE.sub(variable, value)


def quoted(value: Any) -> Any:
    """What `read_config` reads as `value`, whatever `${...}` is in its texts."""
    if isinstance(value, dict):
        return {key: quoted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [quoted(each) for each in value]
    return re.sub(r"\$\{(?=\w+\})", "$${", value) if isinstance(value, str) else value


def openai_hint(model: str | None = None) -> str:
    """How OPENAI_BASE_URL would be used, where it is set and `model` is no endpoint; begins with "; "."""
    if not os.environ.get("OPENAI_BASE_URL"):
        return ""
    name = f" --model-name {model or 'NAME'}"
    key = " --api-key-env OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY") else ""
    return (
        f'; OPENAI_BASE_URL is set and not used: for that endpoint give --model "$OPENAI_BASE_URL"{name}{key}'
    )


def key_hint() -> str:
    """For an endpoint that was given no key, where OPENAI_API_KEY is set; begins with "; "."""
    if not os.environ.get("OPENAI_API_KEY"):
        return ""
    return "; OPENAI_API_KEY is set and not used: for that key give --api-key-env OPENAI_API_KEY"
