"""Read `--x`: a label for the x axis (`data_size`), or a file with a value for each name."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import parse_json, read_text


def read_x(text: str) -> tuple[str, Mapping[str, float]]:
    """Return the label KEY, and the x value of each name in FILE: a JSON object, or CSV lines of a name and a number
    with an optional header. Without `=FILE` the mapping is empty. Raises UserError."""
    key, _, file = text.partition("=")
    if not key.strip():
        raise UserError(f"--x {text}: give a label (data_size), or KEY=FILE")
    if not file:
        return key, {}
    try:
        content = read_text(Path(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--x {text}: {file} is not readable: {error}") from None
    if content.lstrip().startswith("{"):
        try:
            data = parse_json(content)
        except ValueError as error:
            raise UserError(f"--x {text}: {file} is not valid JSON: {error}") from None
        return key, {str(name): number(value, f"--x {text}: {name}") for name, value in data.items()}
    try:
        lines = [line for line in csv.reader(io.StringIO(content)) if line]
    except csv.Error as error:
        raise UserError(f"--x {text}: {file} is not valid CSV: {error}") from None
    if any(len(line) != 2 for line in lines):
        raise UserError(f"--x {text}: {file} does not hold two columns, a name and a number")
    if lines and not _is_number(lines[0][1]):
        lines = lines[1:]
    return key, {name.strip(): number(value, f"--x {text}: {name}") for name, value in lines}


def _is_number(value: object) -> bool:
    try:
        return math.isfinite(float(str(value)))
    except ValueError:
        return False


def number(value: object, what: str) -> float:
    """Convert the value to a number. Raises UserError with a message that begins with `what`."""
    if isinstance(value, bool) or not _is_number(value):
        raise UserError(f"{what}: {value!r} is no number")
    return float(str(value))
