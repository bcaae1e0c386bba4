"""The script of a world: what the Dungeon Master plays by. Pydantic, since it comes from a model.

The format is the paper's (section 3.1, appendix G). Where the appendix is ambiguous both readings are accepted: the
player may stand in `Environment`, in its `places and objects`, or beside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

MOST_PLACES = 500
"""Places and objects of a script, all levels together."""
MOST_ACTIONS = 60
DEEPEST_PLACE = 12
_MOST_MISTAKES = 8
"""That a model reads at once; the rest it finds out next time."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, populate_by_name=True)


def _text_or_place(value: Any) -> str:
    return "text" if isinstance(value, str) else "place"


Entry = Annotated[
    Annotated[str, Tag("text")] | Annotated["Place", Tag("place")], Discriminator(_text_or_place)
]
"""What a place holds under a key of its own: a text for the Dungeon Master alone, or a place or object in it."""


class Place(_Part):
    """A place or an object, with what is in it."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Entry] = Field(init=False)

    information: str | None = None
    """Shown when it is examined, opened, or entered."""
    location: str | None = None
    """Relative to what holds it."""
    relative_location: list[str] | None = Field(default=None, alias="relative location")

    def children(self) -> Iterator[tuple[str, Place]]:
        for name, entry in (self.__pydantic_extra__ or {}).items():
            if isinstance(entry, Place):
                yield name, entry

    def secrets(self) -> Iterator[tuple[str, str]]:
        """Keys that only the Dungeon Master knows, with their texts."""
        for name, entry in (self.__pydantic_extra__ or {}).items():
            if isinstance(entry, str):
                yield name, entry


class Player(_Part):
    model_config = ConfigDict(extra="allow")

    information: str
    """What the player can and cannot do."""


class Environment(_Part):
    initial_state: str = Field(alias="initial state", min_length=1)
    places_and_objects: dict[str, Place] = Field(alias="places and objects", min_length=1)
    player: Player

    def walk(self) -> Iterator[tuple[int, str, Place]]:
        """(depth from 0, name, place) of all, outermost first."""
        below = [(0, name, place) for name, place in reversed(self.places_and_objects.items())]
        while below:
            depth, name, place = below.pop()
            yield depth, name, place
            below += [(depth + 1, *child) for child in reversed(list(place.children()))]


class Action(_Part):
    """What the player can say. Its name has a placeholder for each parameter, `{item}` or `<item>`."""

    description: str | None = None
    special_format: str | None = Field(default=None, alias="special format")
    """Of an argument that no list can hold: an answer, a search, code."""
    verification_code: str = Field(alias="verification code", min_length=1)
    """A regular expression that all of the action matches."""
    parameters: dict[str, list[str] | None] = {}
    """Every value that a parameter can have; None where it is unbounded."""

    @property
    def is_unbounded(self) -> bool:
        """Whether an argument is free text, so that its values cannot be listed."""
        return bool(self.special_format and self.special_format.strip())


class Script(_Part):
    thought: str = Field(alias="Thought")
    environment: Environment = Field(alias="Environment")
    goal: str = Field(alias="Goal", min_length=1)
    completion_conditions: list[str] = Field(alias="Completion Conditions", min_length=1)
    actions: dict[str, Action] = Field(alias="Available Actions", min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _player_in_environment(cls, data: Any) -> Any:
        """Move the player from the other two levels where it may stand."""
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
        """In the paper's words, without the keys that are absent."""
        data: dict[str, Any] = _without_none(self.model_dump(mode="json", by_alias=True))
        return data

    @property
    def content_hash(self) -> str:
        """SHA-256 over the canonical JSON."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()


def _without_none(value: Any) -> Any:
    """Without keys of optional fields that are None; a parameter's None says that it is unbounded and stays."""
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


def first_mistakes(found: list[str]) -> list[str]:
    """As many as a model reads at once."""
    more = [f"and {len(found) - _MOST_MISTAKES} more"] if len(found) > _MOST_MISTAKES else []
    return found[:_MOST_MISTAKES] + more


def mistakes_of(error: ValidationError) -> list[str]:
    """A line for each, as a model can act on it."""
    found = []
    for problem in error.errors(include_url=False, include_context=False):
        where = " / ".join(str(part)[:60] for part in problem["loc"] if part not in ("text", "place"))
        given = "" if problem["type"] == "missing" else f" (found: {_shown(problem.get('input'))})"
        found.append(f"{where or 'the object'}: {problem['msg']}{given}")
    return first_mistakes(found)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return json.dumps(value)[:60]


def read_script(value: Any) -> Script:
    """Keys, types and sizes. Raises KeysError."""
    try:
        script = Script.model_validate(value)
    except ValidationError as error:
        raise KeysError(mistakes_of(error)) from None
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
