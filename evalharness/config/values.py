"""What is read from other spellings: files of tasks and of sampling values, addresses, times."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from evalharness.base.errors import UserError
from evalharness.base.reading import read_text
from evalharness.base.yaml_lines import load_yaml

# The largest numbers of a run, typed or read from a stranger's folder. Tables and curves have a row for each.
Turns = Annotated[int, Field(ge=1, le=10_000)]
Samples = Annotated[int, Field(ge=1, le=10_000)]
SuiteSeed = Annotated[int, Field(ge=0, le=10**9)]

SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p"),
    *("presence_penalty", "frequency_penalty", "repetition_penalty"),
)
"""How the next token is drawn."""


def lines_of(path: Path) -> list[str]:
    """Of a list of tasks: without empty lines, and without what follows a `#`."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    lines = [line.partition("#")[0].strip().strip(",") for line in text.splitlines()]
    return [line for line in lines if line]


def endpoint_url(model: str) -> str:
    """`http://host:8000` and `http://host:8000/v1/chat/completions` as http://host:8000/v1, which a line says; what is
    no URL, or has another path, as it is."""
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


def route(base_url: str, path: str, *, outside: bool = False) -> str:
    """The URL of a route below the base, whose query stays (`?api-version=...`); `outside`: beside `/v1`."""
    address, mark, query = base_url.partition("?")
    address = address.rstrip("/")
    return (address.removesuffix("/v1") if outside else address) + path + mark + query


def read_sampling(path: Path) -> dict[str, Any]:
    """What a file says of how replies are drawn; a checkpoint's `generation_config.json` is such a file."""
    missing = f"--sampling {path}: no such file; give a file of values, or model"
    data = load_yaml(path, f"--sampling {path}", missing)
    stated = data if isinstance(data, dict) else {}
    found = {name: stated[name] for name in SAMPLING if stated.get(name) is not None}
    if not found:
        raise UserError(f"--sampling {path} names none of {', '.join(SAMPLING)}")
    # A generation_config.json holds much else, of which nothing is sampling.
    if "transformers_version" not in stated and (unknown := sorted(map(str, stated.keys() - set(SAMPLING)))):
        raise UserError(
            f"--sampling {path} names {unknown[0][:80]!r}, which is none of {', '.join(SAMPLING)}"
        )
    return found
