"""How each family is compared: `conformance.yaml` beside its code, since the harness knows no family by name.

`comparison` says what a recording cannot determine (an unordered list, a value the original took from elsewhere): such
a field is compared as a multiset or not at all, for everybody. `exceptions` lists where we differ on purpose: the
comparison is made, the difference is counted and shown with its reason, and it is no failure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from evalharness.errors import UserError
from evalharness.families import family_folders

FILE = "conformance.yaml"

FieldName = Literal["goal", "initial_observation", "observation", "progress", "done", "success", "valid"]


class Rule(BaseModel):
    """Applies where every condition given holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    fields: list[FieldName] = Field(min_length=1)
    where: dict[str, Any] = {}
    """Recorded field of the step or of its transcript -> value, or list of values."""
    action: re.Pattern[str] | None = None
    """Found anywhere in the recorded action."""
    because: str = Field(min_length=10)

    @field_validator("action", mode="before")
    @classmethod
    def _compile(cls, value: Any) -> Any:
        try:
            return re.compile(value) if isinstance(value, str) else value
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from error

    def applies(self, field: str, action: str | None, recorded: Mapping[str, Any]) -> bool:
        if field not in self.fields:
            return False
        if self.action is not None and (action is None or not self.action.search(action)):
            return False
        for name, wanted in self.where.items():
            if recorded.get(name) not in (wanted if isinstance(wanted, list) else [wanted]):
                return False
        return True


class ComparisonRule(Rule):
    how: Literal["not compared", "unordered"]
    split: re.Pattern[str] = re.compile(r"\s+")
    """With `unordered`: what separates the items."""

    @field_validator("split", mode="before")
    @classmethod
    def _compile_split(cls, value: Any) -> Any:
        return cls._compile(value)


class Policy(BaseModel):
    """One family's rules; the first comparison rule that applies counts, else values must be equal."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    recorded_as: list[str] = []
    """Other names that recordings have for the family."""
    comparison: list[ComparisonRule] = []
    exceptions: list[Rule] = []


def load_policies(extra: Path | None = None) -> dict[str, Policy]:
    """Family -> policy, for every family's folder that has a `conformance.yaml`.

    `extra` is a file of further exceptions, `family: [rule, ...]`.
    """
    policies = {
        family: _policy(folder / FILE)
        for family, folder in family_folders().items()
        if (folder / FILE).is_file()
    }
    if extra is not None:
        for family, rules in _read(extra).items():
            if family not in policies:
                raise UserError(f"{extra}: unknown family {family!r}; there are: {', '.join(policies)}")
            base = policies[family]
            more = _policy_of({"exceptions": rules}, extra)
            policies[family] = base.model_copy(update={"exceptions": base.exceptions + more.exceptions})
    return policies


def _policy(path: Path) -> Policy:
    return _policy_of(_read(path), path)


def _policy_of(content: Any, path: Path) -> Policy:
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {place}: {first['msg']}") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} must be a mapping")
    return content
