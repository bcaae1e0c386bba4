"""How commands write machine-readable results."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evalharness.errors import UserError


def write_json(target: str, content: object) -> None:
    """Write to a file, or to standard output for `-`."""
    text = json.dumps(content, indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error}") from error
