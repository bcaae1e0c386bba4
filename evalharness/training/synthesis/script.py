"""The script of a text game, which the Dungeon Master follows. A model writes scripts, so pydantic validates them.

The paper defines the format (section 3.1, appendix G). The appendix does not say clearly where `player` belongs, so
three positions are accepted: in `Environment`, in its `places and objects`, or at the top level.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

MOST_PLACES = 500
"""Maximum number of places and objects of a script, counted over all levels of nesting."""
MOST_ACTIONS = 60
DEEPEST_PLACE = 12
_MOST_MISTAKES = 8
"""Maximum number of mistakes in one message to the model."""


class _StrictModel(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, populate_by_name=True)


def _text_or_place(value: Any) -> str:
    return "text" if isinstance(value, str) else "place"


Entry = Annotated[
    Annotated[str, Tag("text")] | Annotated["Place", Tag("place")], Discriminator(_text_or_place)
]
"""A value under a key of a place: a text that only the Dungeon Master knows, or a place or object inside this place."""


class Place(_StrictModel):
    """A place or an object, with the places and objects inside."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Entry] = Field(init=False)

    information: str | None = None
    """The text that the player sees when examining, opening or entering the place."""
    location: str | None = None
    """Location relative to the place that contains it."""
    relative_location: list[str] | None = Field(default=None, alias="relative location")

    def children(self) -> Iterator[tuple[str, Place]]:
        for name, entry in (self.__pydantic_extra__ or {}).items():
            if isinstance(entry, Place):
                yield name, entry

    def secrets(self) -> Iterator[tuple[str, str]]:
        """Yield (key, text) of texts that only the Dungeon Master knows."""
        for name, entry in (self.__pydantic_extra__ or {}).items():
            if isinstance(entry, str):
                yield name, entry


class Player(_StrictModel):
    model_config = ConfigDict(extra="allow")

    information: str
    """The player's abilities and restrictions."""


class Environment(_StrictModel):
    initial_state: str = Field(alias="initial state", min_length=1)
    places_and_objects: dict[str, Place] = Field(alias="places and objects", min_length=1)
    player: Player

    def walk(self) -> Iterator[tuple[int, str, Place]]:
        """Yield (depth from 0, name, place) of all places, the outermost first."""
        below = [(0, name, place) for name, place in reversed(self.places_and_objects.items())]
        while below:
            depth, name, place = below.pop()
            yield depth, name, place
            below += [(depth + 1, *child) for child in reversed(list(place.children()))]


class Action(_StrictModel):
    """An action of the player. Its name has a placeholder for each parameter, `{item}` or `<item>`."""

    description: str | None = None
    special_format: str | None = Field(default=None, alias="special format")
    """The format of a free text argument, such as an answer, a search query, or code."""
    verification_code: str = Field(alias="verification code", min_length=1)
    """A regular expression that matches the whole action."""
    parameters: dict[str, list[str] | None] = {}
    """Parameter -> all values of the parameter; None if any text is a value."""

    @property
    def is_unbounded(self) -> bool:
        """Whether an argument is free text; such an argument has no list of values."""
        return bool(self.special_format and self.special_format.strip())


class Script(_StrictModel):
    thought: str = Field(alias="Thought")
    environment: Environment = Field(alias="Environment")
    goal: str = Field(alias="Goal", min_length=1)
    completion_conditions: list[str] = Field(alias="Completion Conditions", min_length=1)
    actions: dict[str, Action] = Field(alias="Available Actions", min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _player_in_environment(cls, data: Any) -> Any:
        """Move the player into `Environment`, if it is in `places and objects` or at the top level."""
        if not isinstance(data, dict) or not isinstance(data.get("Environment"), dict):
            return data
        environment = dict(data["Environment"])
        places = environment.get("places and objects")
        if "player" not in environment:
            if "player" in data:
                environment["player"] = data["player"]
            elif isinstance(places, dict) and "player" in places:
                environment["player"] = places["player"]
                environment["places and objects"] = {k: v for k, v in places.items() if k != "player"}
        return {**data, "Environment": environment}

    def to_json(self) -> dict[str, Any]:
        """Return the script with the paper's keys. Optional keys without a value are left out."""
        data: dict[str, Any] = _without_none(self.model_dump(mode="json", by_alias=True))
        return data

    @property
    def content_hash(self) -> str:
        """SHA-256 of the canonical JSON."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()


def _without_none(value: Any) -> Any:
    """Remove optional fields that are None. None in `parameters` is kept, because it means that any text is a value."""
    if not isinstance(value, dict):
        return value
    return {
        key: each if key == "parameters" else _without_none(each)
        for key, each in value.items()
        if each is not None
    }


class KeysError(ValueError):
    """Keys or types are wrong."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


def limit_mistakes(mistakes: list[str]) -> list[str]:
    """Return the first `_MOST_MISTAKES` mistakes, and the number of the others."""
    more = [f"and {len(mistakes) - _MOST_MISTAKES} more"] if len(mistakes) > _MOST_MISTAKES else []
    return mistakes[:_MOST_MISTAKES] + more


def list_mistakes(error: ValidationError) -> list[str]:
    """Return a line for each mistake, to be sent to the model."""
    mistakes = []
    for problem in error.errors(include_url=False, include_context=False):
        where = " / ".join(str(part)[:60] for part in problem["loc"] if part not in ("text", "place"))
        value = "" if problem["type"] == "missing" else f" (found: {_describe_value(problem.get('input'))})"
        mistakes.append(f"{where or 'the object'}: {problem['msg']}{value}")
    return limit_mistakes(mistakes)


def _describe_value(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value)[:60]


def read_script(value: Any) -> Script:
    """Return the script after checking keys, types and sizes. Raises KeysError."""
    try:
        script = Script.model_validate(value)
    except ValidationError as error:
        raise KeysError(list_mistakes(error)) from None
    too_many = []
    places = list(script.environment.walk())
    if len(places) > MOST_PLACES:
        too_many.append(f"places and objects: {len(places)}; at most {MOST_PLACES}")
    if any(depth >= DEEPEST_PLACE for depth, _, _ in places):
        too_many.append(f"places and objects: nested more than {DEEPEST_PLACE} deep")
    if len(script.actions) > MOST_ACTIONS:
        too_many.append(f"Available Actions: {len(script.actions)}; at most {MOST_ACTIONS}")
    if too_many:
        raise KeysError(too_many)
    return script
