"""How each family is compared: `FAMILY.yaml` in this folder.

`comparison` says what a recording cannot determine (an unordered list, a value the original took from elsewhere):
such a field is compared as a multiset, in part or not at all. `exceptions` lists where we differ on purpose: the
comparison is made, the difference is counted and shown with its reason, and it is no failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from evalharness.base.errors import UserError, nearest
from evalharness.base.yaml_lines import load_model
from evalharness.envs import specs

FieldName = Literal["goal", "initial_observation", "observation", "progress", "done", "success", "valid"]


def _compiled(value: Any) -> Any:
    try:
        return re.compile(value) if isinstance(value, str) else value
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error


Regex = Annotated[re.Pattern[str], BeforeValidator(_compiled)]


class Rule(BaseModel):
    """Applies where every condition given holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    fields: list[FieldName] = Field(min_length=1)
    where: dict[str, Any] = {}
    """Recorded field of the step or of its transcript -> value, or list of values."""
    action: Regex | None = None
    """Found anywhere in the recorded action."""
    recorded: Regex | None = None
    """Found anywhere in the recorded text."""
    because: str = Field(min_length=10)

    def applies(self, field: str, value: Any, action: str | None, recorded: Mapping[str, Any]) -> bool:
        if field not in self.fields:
            return False
        if self.action is not None and (action is None or not self.action.search(action)):
            return False
        if self.recorded is not None and not (isinstance(value, str) and self.recorded.search(value)):
            return False
        for name, wanted in self.where.items():
            if recorded.get(name) not in (wanted if isinstance(wanted, list) else [wanted]):
                return False
        return True


class ComparisonRule(Rule):
    how: Literal["not compared", "unordered", "in part"]
    split: Regex = re.compile(r"\s+")
    """With `unordered`: what separates the items."""
    part: Regex | None = None
    """With `in part`: the first match is compared, the rest of the text is not."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.how == "in part") != (self.part is not None):
            raise ValueError("`in part` needs `part`, and nothing else has it")
        return self

    def equal(self, recorded: str, ours: str) -> bool:
        if self.part is not None:
            theirs, found = self.part.search(recorded), self.part.search(ours)
            return theirs is not None and found is not None and theirs[0] == found[0]
        return items(self.split, recorded) == items(self.split, ours)


class ExceptionRule(Rule):
    """With `order_of` or `numbers`, only a difference that is no more than that is excepted."""

    order_of: Regex | None = None
    """What separates the items that may come in another order."""
    numbers: Regex | None = None
    """Numbers that may differ by `within`."""
    within: float = 0

    def excuses(self, recorded: Any, ours: Any) -> bool:
        if self.order_of is None and self.numbers is None:
            return True
        texts, figures = [str(recorded), str(ours)], []
        if self.numbers is not None:
            figures = [sorted(_figures(self.numbers, text)) for text in texts]
            texts = [self.numbers.sub("#", text) for text in texts]
            if len(figures[0]) != len(figures[1]):
                return False
            if any(abs(a - b) > self.within for a, b in zip(*figures, strict=True)):
                return False
        if self.order_of is not None:
            return items(self.order_of, texts[0]) == items(self.order_of, texts[1])
        return texts[0] == texts[1]


def _figures(numbers: re.Pattern[str], text: str) -> list[float]:
    try:
        return [float(match[0]) for match in numbers.finditer(text)]
    except ValueError as error:
        raise UserError(
            f"an exception's numbers, {numbers.pattern!r}, find something else: {error}"
        ) from None


def items(separator: re.Pattern[str], text: str) -> Counter[str]:
    """The items of a text and how often each occurs."""
    return Counter(item for item in separator.split(text) if item)


class Tolerance(BaseModel):
    """One family's rules; the first comparison rule that applies counts, else values must be equal."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    recorded_as: list[str] = []
    """Other names that recordings have for the family."""
    menu: Regex | None = None
    """`(?P<number>..)` and `(?P<option>..)` of a line in a menu that the next action answers by number. Where our menu
    has the same options in another order, a recorded number is replayed as ours for the same option."""
    comparison: list[ComparisonRule] = []
    exceptions: list[ExceptionRule] = []

    def same_choice(self, action: str, recorded_menu: str | None, our_menu: str) -> str:
        """The action to replay, after the two observations that came before it."""
        if self.menu is None or recorded_menu is None:
            return action
        theirs, ours = (
            {match["number"]: match["option"] for match in self.menu.finditer(text)}
            for text in (recorded_menu, our_menu)
        )
        option = theirs.get(action.strip())
        return next((number for number, name in ours.items() if name == option), action) if option else action


class _Exceptions(RootModel[dict[str, list[ExceptionRule]]]):
    """A person's file of further exceptions."""


def load_tolerances(extra: Path | None = None) -> dict[str, Tolerance]:
    """Family -> tolerance: its file's, or everything compared exactly if it has no file.

    `extra` is a file of further exceptions, `family: [rule, ...]`.
    """
    tolerances = {}
    for family in specs():
        path = Path(__file__).with_name(f"{family}.yaml")
        tolerances[family] = load_model(path, Tolerance, str(path))[0] if path.is_file() else Tolerance()
    if extra is not None:
        for family, rules in load_model(extra, _Exceptions, str(extra))[0].root.items():
            if family not in tolerances:
                raise UserError(f"{extra}: unknown family {family!r}; there are: {', '.join(tolerances)}")
            base = tolerances[family]
            tolerances[family] = base.model_copy(update={"exceptions": base.exceptions + rules})
    return tolerances


def installed_name(recorded: str, source: str, tolerances: Mapping[str, Tolerance]) -> str:
    """What a recording's family is called here. Raises UserError where it is not installed."""
    family = next((name for name, rules in tolerances.items() if recorded in rules.recorded_as), recorded)
    if family not in specs():
        raise UserError(f"{source}: unknown family {recorded!r}{nearest(recorded, sorted(specs()))}")
    return family
