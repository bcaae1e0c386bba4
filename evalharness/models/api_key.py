"""Read an endpoint's API key from an environment variable. The key is never shown."""

from __future__ import annotations

import os
import re

from evalharness.base.errors import UserError
from evalharness.base.redaction import know

_VARIABLE = re.compile(r"(?=[A-Z]{1,16}[0-9]{0,2}$|[A-Z0-9]{0,16}_)[A-Z_][A-Z0-9_]{0,39}")
"""Matches the usual names of environment variables: a few words in capitals. No API key has this form."""


def may_be_a_key(variable: str) -> bool:
    """Return whether the user may have given an API key instead of a variable's name."""
    return variable not in os.environ and not _VARIABLE.fullmatch(variable)


def read_key(option: str, variable: str | None) -> str | None:
    """Read the key from the variable that `option` names. Raises UserError, which never shows a possible key."""
    if variable is None:
        return None
    if key := os.environ.get(variable, "").strip():
        if not re.fullmatch(r"[!-~]+", key):
            raise UserError(f"{option} {variable}: the key has a character that HTTP headers cannot contain")
        know(key)
        return key
    if may_be_a_key(variable):
        raise UserError(
            f"{option} takes the name of an environment variable, but the given text looks like a key (it is not "
            f"shown): export API_KEY=... and give {option} API_KEY"
        )
    raise UserError(f"{option} {variable}: that environment variable is not set")
