"""Read options from a YAML file with `${VAR}`, and give hints about variables OPENAI_*."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.yaml_lines import load_yaml

_REFERENCE = re.compile(r"(\$?)\$\{(\w+)\}")


def read_config(path: Path) -> dict[str, Any]:
    """Read a YAML file of options. In values, `${VAR}` is replaced by the environment variable, and `$${VAR}` by the
    text `${VAR}`. Paths stay relative to the current folder. Flags override the options."""
    data = load_yaml(path, f"configuration file {path}", f"no configuration file {path}")
    if not isinstance(data, dict):
        raise UserError(f"configuration file {path} is not a mapping of options to values")
    return {str(key).replace("-", "_"): _expand(value, f"{path}, {key}") for key, value in data.items()}


def _expand(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _expand(each, f"{where}.{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [_expand(each, where) for each in value]
    if not isinstance(value, str):
        return value

    def variable(match: re.Match[str]) -> str:
        escape_variables, name = match.groups()
        if escape_variables:
            return f"${{{name}}}"
        if name not in os.environ:
            raise UserError(
                f"{where}: the environment variable {name} is not set (the text itself: $${{{name}}})"
            )
        return os.environ[name]

    return _REFERENCE.sub(variable, value)


def escape_variables(value: Any) -> Any:
    """Escape `${...}` in texts, so that `read_config` returns `value`."""
    if isinstance(value, dict):
        return {key: escape_variables(each) for key, each in value.items()}
    if isinstance(value, list):
        return [escape_variables(each) for each in value]
    return re.sub(r"\$\{(?=\w+\})", "$${", value) if isinstance(value, str) else value


def openai_hint(model: str | None = None) -> str:
    """Return how to use OPENAI_BASE_URL, as the end of a message ("; ..."); "" if this variable is not set."""
    if not os.environ.get("OPENAI_BASE_URL"):
        return ""
    name = f" --model-name {model or 'NAME'}"
    key = " --api-key-env OPENAI_API_KEY" if os.environ.get("OPENAI_API_KEY") else ""
    return (
        f'; OPENAI_BASE_URL is set and not used: for that endpoint give --model "$OPENAI_BASE_URL"{name}{key}'
    )


def key_hint() -> str:
    """Return how to use OPENAI_API_KEY, as the end of a message ("; ..."); "" if this variable is not set."""
    if not os.environ.get("OPENAI_API_KEY"):
        return ""
    return "; OPENAI_API_KEY is set and not used: for that key give --api-key-env OPENAI_API_KEY"
