"""Options for external agents (`--agent external`): their command and time limits."""

from __future__ import annotations

import shlex
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, field_validator

from evalharness.agents.program import Program, hash_command
from evalharness.base.redaction import know_words
from evalharness.config.option import ConfigPart, Option


class OutsideConfig(ConfigPart):
    agent_command: Annotated[str | None, Option("COMMAND", later=True)] = None
    """command that starts an external agent for each episode: 'python my_agent.py'; environment variables give the
    agent the server's address and token"""
    turn_time_limit: Annotated[float, Option(no_flag=True, later=True)] = Field(
        default=300.0, gt=0, allow_inf_nan=False
    )
    """maximum seconds of a turn of an external agent; after a longer turn the episode ends and its score counts"""
    agent_wait: Annotated[float, Option(no_flag=True, operational=True)] = Field(
        default=600.0, gt=0, allow_inf_nan=False
    )
    """maximum seconds from the start of an external agent's process until it asks for its episode"""

    @field_validator("agent_command")
    @classmethod
    def _register_secrets(cls, given: str | None) -> str | None:
        know_words(given or "")
        return given

    @cached_property
    def program(self) -> tuple[dict[str, str], Program]:
        """The hashes of the command's words and its program (`hash_command`); empty if the command cannot be parsed."""
        try:
            return hash_command(shlex.split(self.agent_command or ""))
        except ValueError:
            return {}, Program()

    def program_identity(self) -> dict[str, Any]:
        """Return the hashes of the command's program and the files that could not be hashed."""
        hashes, program = self.program
        return {"command_sha256": hashes, "not_checked": program.not_checked}
