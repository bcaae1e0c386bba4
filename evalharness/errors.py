"""The two kinds of error that the harness itself raises."""

from __future__ import annotations

from typing import Any


class UserError(Exception):
    """Something the person at the terminal can mend; the message says what and how. Exit status 2."""


class InfrastructureError(Exception):
    """A server, simulator or disk failed; never the model's fault."""

    def details(self) -> dict[str, Any]:
        """What `errors.jsonl` should say beyond the message, as JSON data."""
        return {}
