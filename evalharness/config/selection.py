"""Options that select the tasks of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from evalharness.base.errors import nearest
from evalharness.config.option import ConfigPart, Option
from evalharness.config.values import Samples, SuiteSeed, lines_of


class SelectionConfig(ConfigPart):
    tasks: Annotated[str, Option("LIST|@FILE")] = "all"
    """all, or a comma list of FAMILY, FAMILY:0-9, FAMILY:kind=KIND, FAMILY:difficulty=easy|hard (also all:...) and
    task ids; @FILE: such a list from a file, one entry a line.

    YAML and Python also accept a list."""
    suite: Annotated[str, Option("SUITE")] = "agentboard"
    """agentboard: the published benchmark; open: built in, needs no data; or the suite of one family (default:
    agentboard if its data is imported, else open)"""
    suite_seed: SuiteSeed = 0
    """seed of the tasks: of the open suite (0 is the built-in one) and of the choice by --draw"""
    questions: Annotated[str | None, Option("N|all")] = None
    """number of tasks drawn by --suite-seed from a family's larger suite (default: the family's own number)"""
    limit: int | None = Field(default=None, ge=1)
    """play only the first N tasks of each family, for a smoke test; --draw is representative"""
    draw: Annotated[int | None, Option(later=True, stored="sample")] = Field(default=None, ge=1)
    """play N tasks of each family, drawn by --suite-seed and spread over its kinds of tasks"""
    subset: Annotated[int | None, Option(later=True)] = Field(default=None, ge=1)
    """play N tasks that represent the held-out score, chosen by family, kind and difficulty, the same for every model
    (80 of 282: an error of 3 to 4 points of success, 5 of a difference; 14 of 20 Jericho games are left out)"""
    samples: Samples = 1
    """number of attempts at each task"""

    @field_validator("tasks", mode="before")
    @classmethod
    def _join_tasks(cls, given: Any) -> Any:
        if isinstance(given, list | tuple):
            given = ",".join(map(str, given))
        if isinstance(given, str) and given.startswith("@"):
            if not (lines := lines_of(Path(given[1:]).expanduser())):
                raise ValueError("contains no task")
            return ",".join(lines)
        return given

    @field_validator("suite")
    @classmethod
    def _require_suite(cls, name: str) -> str:
        from evalharness.envs import specs
        from evalharness.suites.selection import suites_of

        if name not in (known := suites_of(specs())):
            raise ValueError(f"no such suite{nearest(name, known)}")
        return name

    @field_validator("questions", mode="before")
    @classmethod
    def _parse_questions(cls, value: Any) -> Any:
        if value is None or value == "all":
            return value
        if isinstance(value, bool) or not str(value).isdecimal() or int(str(value)) < 1:
            raise ValueError("give a number above 0, or all")
        return str(int(str(value)))
