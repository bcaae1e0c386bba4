"""From flags and a file to a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from evalharness.base.errors import UserError
from evalharness.base.renamed import with_new_names
from evalharness.base.settings import openai_hint, read_config
from evalharness.config.option import Part
from evalharness.config.protocol import with_protocol
from evalharness.config.run import EXTERNAL_AGENT, RunConfig, problems

P = TypeVar("P", bound=Part)


def make_config(
    flags: dict[str, Any], config_file: Path | None = None, defaults: Mapping[str, Any] | None = None
) -> RunConfig:
    """Flags over file over what their protocol says over `defaults` over those of the fields. Raises UserError naming
    the option that is wrong."""
    given = options_in(config_file)
    given |= {key: value for key, value in flags.items() if value is not None}
    values = with_protocol(given, defaults)
    if values.get("agent") == EXTERNAL_AGENT and flags.get("model") is None:
        values.pop("model", None)  # one that stands in a file is for other agents
    elif "model" not in values:
        raise UserError(
            "no model: give --model DIR, --model http://host:port/v1, --model demo or --model oracle"
            + openai_hint()
        )
    return RunConfig.of(**values)


def options_in(path: Path | None) -> dict[str, Any]:
    """Of a configuration file; the one that a run folder keeps may be older than an option's name."""
    if path is None:
        return {}
    given = read_config(path)
    return with_new_names(given) if (path.parent / "manifest.json").exists() else given


def make_part(kind: type[P], flags: Mapping[str, Any]) -> P:
    """One part of a configuration, for commands that need no more. Raises UserError naming the option that is wrong."""
    try:
        return kind.model_validate({key: value for key, value in flags.items() if value is not None})
    except ValidationError as error:
        raise UserError("; ".join(problems(error))) from None
