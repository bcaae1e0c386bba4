"""Read values of options: files of tasks and of sampling values, and endpoint URLs."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from evalharness.base.errors import UserError
from evalharness.base.reading import read_text
from evalharness.base.yaml_lines import load_yaml

# Upper limits, because numbers can come from another person's folder, and tables have a row for each turn or sample.
Turns = Annotated[int, Field(ge=1, le=10_000)]
Samples = Annotated[int, Field(ge=1, le=10_000)]
SuiteSeed = Annotated[int, Field(ge=0, le=10**9)]

SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)
"""Options for the choice of the next token."""


def lines_of(path: Path) -> list[str]:
    """Read a list of tasks from a file. Leave out empty lines and comments after `#`."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    lines = [line.partition("#")[0].strip().strip(",") for line in text.splitlines()]
    return [line for line in lines if line]


def endpoint_url(model: str) -> str:
    """Complete or shorten an endpoint's URL to `http://host:8000/v1`, and report the change; keep any other text."""
    if not model.startswith(("http://", "https://")):
        return model
    address, mark, query = model.partition("?")
    whole = re.sub(r"/(?:chat/completions|completions|models)/*$", "", address)
    if re.fullmatch(r"https?://[^/?#]+/*", whole):
        whole = whole.rstrip("/") + "/v1"
    whole += mark + query
    if whole != model:
        logging.getLogger("evalharness").info("--model %s is read as %s", model, whole)
    return whole


def read_sampling(path: Path) -> dict[str, Any]:
    """Read sampling options from a file, such as a checkpoint's `generation_config.json`."""
    missing = f"--sampling {path}: no such file; give a file of values, or model"
    data = load_yaml(path, f"--sampling {path}", missing)
    stated = data if isinstance(data, dict) else {}
    sampling = {name: stated[name] for name in SAMPLING if stated.get(name) is not None}
    if not sampling:
        raise UserError(f"--sampling {path} contains none of {', '.join(SAMPLING)}")
    # A generation_config.json has many other fields that do not affect sampling.
    if "transformers_version" not in stated and (unknown := sorted(map(str, stated.keys() - set(SAMPLING)))):
        raise UserError(
            f"--sampling {path} contains {unknown[0][:80]!r}, which is none of {', '.join(SAMPLING)}"
        )
    return sampling
