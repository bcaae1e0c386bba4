"""The two kinds of error that the harness itself raises, and its one warning."""

from __future__ import annotations

from typing import Any


class UserError(Exception):
    """Something the person at the terminal can fix; the message says what and how. Exit status 2."""


class InfrastructureError(Exception):
    """A server, simulator or disk failed; never the model's fault."""

    def details(self) -> dict[str, Any]:
        """What `errors.jsonl` should say beyond the message, as JSON data."""
        return {}


class DamageWarning(UserWarning):
    """A run folder is not as it was written, and what is left of it can still be read."""
