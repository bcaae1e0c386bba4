"""How the model acts: prompts, wording, turns, what stays in the conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from evalharness.base.reading import read_text
from evalharness.config.option import Option, Part
from evalharness.envs.base import MAX_TURNS, EnvSpec


class AgentConfig(Part):
    action_interface: Annotated[Literal["react", "tools"], Option(model_only=True)] = "react"
    """react: the action is a line of the reply; tools: the model calls its one tool, act(command)"""
    max_turns: int | None = Field(default=None, ge=1, le=1_000_000)
    """turns of an episode (default: 30, or less where the family has less)"""
    perturb: Annotated[str | None, Option("NAME[+NAME]")] = None
    """word the actions differently: P1, P1+P4; see: evalharness perturb list"""
    prompts: Annotated[Path | None, Option(by_content=True)] = None
    """folder with your own prompt file, FAMILY.yaml, for each family played (`evalharness prompts export`: ours)"""
    system: Annotated[str | None, Option("TEXT|FILE", later=True, model_only=True)] = None
    """a system message that replaces that of the prompt files: the text, or a file that holds it"""
    shots: Annotated[int | None, Option(later=True, model_only=True)] = Field(default=None, ge=0)
    """worked examples in the prompt: 0 is none; above 1 where a family has more (default: as the prompt file has it)"""
    history_thinking: Annotated[Literal["strip", "keep"], Option(model_only=True)] = "strip"
    """whether a reply's reasoning stays in the conversation"""

    @field_validator("perturb", mode="before")
    @classmethod
    def _list_as_text(cls, given: Any) -> Any:
        return "+".join(map(str, given)) if isinstance(given, list | tuple) else given

    @field_validator("perturb")
    @classmethod
    def _normal_perturb(cls, name: str | None) -> str | None:
        from evalharness.protocol.perturb import normal_name

        return None if name is None else normal_name(name)

    @field_validator("system", mode="before")
    @classmethod
    def _text_of_a_file(cls, given: Any) -> Any:
        """The text is what results depend on, and not where it lay."""
        if not isinstance(given, str) or "\n" in given or len(given) > 1000:
            return given
        try:
            path = Path(given).expanduser()
            return read_text(path).strip() if path.is_file() else given
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot be read: {error}") from None

    @property
    def acts_by_tools(self) -> bool:
        return self.action_interface == "tools"

    @property
    def keeps_thinking(self) -> bool:
        return self.history_thinking == "keep"

    def turn_limit(self, spec: EnvSpec) -> int:
        """Turns of an episode of that family: what the user says, else the family's own limit."""
        return self.max_turns or min(spec.own.max_turns, MAX_TURNS)
