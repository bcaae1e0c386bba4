"""The key of an endpoint: read from a variable, never shown."""

from __future__ import annotations

import os
import re

from evalharness.base.errors import UserError
from evalharness.base.redaction import know

_VARIABLE = re.compile(r"(?=[A-Z]{1,16}[0-9]{0,2}$|[A-Z0-9]{0,16}_)[A-Z_][A-Z0-9_]{0,39}")
"""What people call a variable, and nobody's key: a few words in capitals."""


def may_be_a_key(variable: str) -> bool:
    """Whether what should be the name of a variable is none that is set, and looks like a key itself."""
    return variable not in os.environ and not _VARIABLE.fullmatch(variable)


def read_key(option: str, variable: str | None) -> str | None:
    """The key in the variable that `option` names. Raises UserError, which shows no text that may be a key itself."""
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        if not re.fullmatch(r"[!-~]+", key):
            raise UserError(f"{option} {variable}: its key holds a character that no HTTP header can hold")
        know(key)
        return key
    if may_be_a_key(variable):
        raise UserError(
            f"{option} takes the name of an environment variable, and what was given looks like a key (it is not "
            f"shown): export API_KEY=... and give {option} API_KEY"
        )
    raise UserError(f"{option} {variable}: that environment variable is not set")
