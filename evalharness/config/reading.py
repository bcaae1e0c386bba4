"""From flags and a file to a configuration, and from what is wrong with it to a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalharness.config.run import RunConfig
from evalharness.errors import UserError, nearest
from evalharness.settings import openai_hint, read_config


def make_config(
    flags: dict[str, Any], config_file: Path | None = None, defaults: Mapping[str, Any] | None = None
) -> RunConfig:
    """Flags over file over `defaults` over those of the fields. Raises UserError naming the option that is wrong."""
    values = {**(defaults or {}), **(read_config(config_file) if config_file else {})}
    values |= {key: value for key, value in flags.items() if value is not None}
    if "model" not in values:
        raise UserError(
            "no model: give --model DIR, --model http://host:port/v1, --model demo or --model oracle"
            + openai_hint()
        )
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise UserError(_explain(error, "")) from None


def _explain(error: ValidationError, source: str) -> str:
    lines = []
    for problem in error.errors():
        if not problem["loc"]:
            lines.append(f"{source}{problem['msg'].removeprefix('Value error, ')}")
            continue
        name = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"{source}no such option {name!r}{nearest(name, sorted(RunConfig.model_fields))}")
            continue
        flag = "--" + name.replace("_", "-")
        given = problem.get("input")
        why = problem["msg"].removeprefix("Value error, ")
        lines.append(f"{source}{flag} {given}: {why[0].lower()}{why[1:]}")
    return "; ".join(lines)
