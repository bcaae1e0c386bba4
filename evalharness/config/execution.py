"""Options for a run's folder, workers, engine and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, PositiveInt, field_validator

from evalharness.config.option import ConfigPart, Option

RUN_NAME = "run_name"
"""Key of the label that stores `--name`."""


class ExecutionConfig(ConfigPart):
    output: Annotated[Path | None, Option(short="-o", operational=True)] = None
    """run folder (default: a folder under results/ with the model's name)"""
    workers: Annotated[dict[str, PositiveInt], Option("FAMILY=N", operational=True)] = Field(default={})
    """number of worker processes of a family (default: by cores and measured cost); may be repeated"""
    engine: Annotated[Literal["ours", "stock"], Option(later=True)] = "ours"
    """stock: play ALFWorld with TextWorld and PDDL with pddlgym: the same games, many times slower"""
    repeat_check: Annotated[int, Option(operational=True)] = Field(default=0, ge=0, le=10_000)
    """at the end, ask N turns of the finished episodes again, one at a time; the table says how many
    greedy replies differed"""
    label: Annotated[dict[str, str], Option("KEY=VALUE", operational=True)] = Field(default={})
    """a label for tables and plots, such as data_size=8000 (`paper figure5 --x data_size`); may be repeated"""

    name: Annotated[str | None, Option("NAME", operational=True)] = Field(
        default=None, min_length=1, max_length=80
    )
    """the run's name in tables and pages (default: the model's name); the same command with another name renames it"""

    @property
    def labels(self) -> dict[str, str]:
        """The labels for the manifest, including the name."""
        return {**self.label, **({RUN_NAME: self.name} if self.name else {})}

    @field_validator("label", mode="before")
    @classmethod
    def _convert_numbers(cls, given: Any) -> Any:
        """Convert numbers to text: `data_size: 8000` in YAML is the same label as `--label data_size=8000`."""
        if not isinstance(given, dict):
            return given
        return {key: str(value) if type(value) in (int, float) else value for key, value in given.items()}

    @field_validator("output", mode="before")
    @classmethod
    def _check_folder_name(cls, folder: Any) -> Any:
        # `-o "$OUT"` with OUT unset gives "", and `Path("")` would be the current folder.
        if isinstance(folder, str) and not folder.strip():
            raise ValueError("not valid as the name of a folder")
        return folder
