"""Read and write training data: a JSON line for each conversation, which marks errors and the turns to train on.

A data set is a file of JSON lines with a manifest beside it (`data.jsonl`, `data.manifest.json`). The file is ASCII
with JSON escapes. So control characters in a model's text are kept, and cannot act on a terminal that shows the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, TypeAdapter, ValidationError

from evalharness.base import reading
from evalharness.base.errors import UserError, system_errors
from evalharness.base.locks import exclusive
from evalharness.base.reading import lines_of, open_file
from evalharness.base.version import __version__
from evalharness.records.stored import Stored, why

SCHEMA = 1
KIND = "evalharness training data"
Role = Literal["system", "user", "assistant"]


class UnfitError(ValueError):
    """A record that does not fit the format; the message says why."""


@dataclass(frozen=True)
class MarkedMessage:
    role: Role
    content: str
    loss: StrictBool | None = None
    """Whether the assistant's message counts in the training loss (None: yes). None on all other messages."""
    error: tuple[str, ...] = ()
    """Kinds of error in an assistant's turn (`parameter`, `place`, `logic`, ...); empty if the turn is right."""
    refine: StrictBool = False
    """Whether the turn corrects errors: it is the first turn without an error after a sequence of errors."""

    @property
    def trained(self) -> bool:
        return self.role == "assistant" and self.loss is not False

    def to_json(self) -> dict[str, Any]:
        """Return the message as JSON data. Only messages of the assistant have `loss`, `error` and `refine`."""
        if self.role != "assistant":
            return {"role": self.role, "content": self.content}
        return {**vars(self), "loss": self.trained, "error": list(self.error)}

    def normalize(self) -> MarkedMessage:
        """Return the message as it is stored: `loss` is true or false for the assistant and None for others. Raises
        UnfitError."""
        if self.role == "assistant":
            return self if self.loss is not None else replace(self, loss=True)
        if self.loss or self.error or self.refine:
            raise UnfitError(f"a message of role {self.role} has loss, error or refine")
        return self if self.loss is None else replace(self, loss=None)


@dataclass(frozen=True)
class Conversation:
    """A conversation to train on. `metadata` is JSON data and must not be changed."""

    id: str
    """The conversation's name in its data set: `grounded/babyai/open-100/017/0`."""
    source: str
    """The origin of the conversation: `grounded`, `from-runs`, `trajectories`, `general`, or a name that the user
    chose."""
    world: str
    """The environment's family, or `script` if a model played a script; empty for general conversations."""
    task_hash: Annotated[str | None, Field(default=None)]
    """Content hash of the played task; None if there is no task."""
    messages: Annotated[tuple[MarkedMessage, ...], Field(min_length=1)]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def player_turns(self) -> tuple[MarkedMessage, ...]:
        return tuple(message for message in self.messages if message.role == "assistant")

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "messages": [message.to_json() for message in self.messages]}

    @classmethod
    def from_json(cls, data: object) -> Conversation:
        """Convert JSON data to a conversation. Raises UnfitError if the data does not have the format."""
        try:
            conversation = _CONVERSATION.validate_python(data)
        except ValidationError as error:
            # Leave out the message's number, because reasons are counted by their text.
            raise UnfitError(re.sub(r"\.\d+", "", why(error))) from None
        return replace(conversation, messages=tuple(message.normalize() for message in conversation.messages))

    def replace_messages(self, messages: tuple[MarkedMessage, ...]) -> Conversation:
        """Return the conversation with other messages, without the metadata that describes single turns."""
        by_turn = ("without_errors", "progress", "valid")
        metadata = {key: value for key, value in self.metadata.items() if key not in by_turn}
        return replace(self, messages=messages, metadata=metadata)

    def to_line(self) -> str:
        return json.dumps(self.to_json(), ensure_ascii=True, separators=(",", ":")) + "\n"


_CONVERSATION = TypeAdapter(Conversation)


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokenLine:
    number: int
    """Number of the line, from 1."""
    why: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.why}"


def parse_json(text: str | bytes) -> Any:
    """Parse with `reading.parse_json`; raise UnfitError instead of ValueError."""
    try:
        return reading.parse_json(text)
    except ValueError as error:
        raise UnfitError(f"not JSON ({str(error).splitlines()[0][:120]})") from None


def read_data(path: Path, broken: list[BrokenLine]) -> Iterator[Conversation]:
    """Yield the conversations of a data set in the file's order. Lines without a valid conversation go to `broken`.

    If the last line cannot be parsed and has no line end, a kill cut the file off, and the line's message says so.
    Raises UserError if the file cannot be read.
    """
    with system_errors(f"cannot read {path}"), open_file(path) as file:
        for number, line in enumerate(lines_of(file), 1):
            if not line.strip():
                continue
            try:
                yield Conversation.from_json(parse_json(line))
            except UnfitError as error:
                why = str(error) if line.endswith(b"\n") else f"torn: the file ends within the line ({error})"
                broken.append(BrokenLine(number, why))


def describe_empty(path: Path, broken: list[BrokenLine]) -> UserError:
    """Return the error for a data set without any valid conversation."""
    first = f" ({broken[0]})" if broken else ""
    return UserError(
        f"{path} has no conversation in the format of evalharness{first}; convert data in another format with: "
        f"evalharness refine read {path} -o data.jsonl"
    )


def describe_broken(path: Path, broken: list[BrokenLine], most: int = 3) -> list[str]:
    """Return messages with the number of broken lines and the first `most` broken lines. Empty if no line is broken."""
    if not broken:
        return []
    lines = [f"{path}: {len(broken):,} broken line{'s' * (len(broken) != 1)} left out"]
    return lines + [f"  {line}" for line in broken[:most]] + ["  ..."] * (len(broken) > most)


# --- writing -----------------------------------------------------------------------------------------------------


class JsonCounts:
    """Counts with a method that returns the public fields as JSON, with counters sorted by name."""

    def to_json(self) -> dict[str, Any]:
        return {name: _sort_counts(value) for name, value in vars(self).items() if not name.startswith("_")}


def _sort_counts(value: object) -> object:
    if isinstance(value, Counter):
        return dict(sorted(value.items()))
    return sorted(value) if isinstance(value, set) else value


@dataclass
class Counts(JsonCounts):
    """The counts of a data set, made while the data set is written."""

    samples: int = 0  # number of conversations; manifests use this name
    messages: int = 0
    player_turns: int = 0
    trained_turns: int = 0
    trained_characters: int = 0
    """Characters of the trained turns: a measure of size, because conversations differ in length."""
    error_turns: int = 0
    refine_turns: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Kind of error -> number of turns."""
    sources: Counter[str] = field(default_factory=Counter)
    worlds: Counter[str] = field(default_factory=Counter)

    def add(self, conversation: Conversation) -> None:
        turns = conversation.player_turns
        self.samples += 1
        self.messages += len(conversation.messages)
        self.player_turns += len(turns)
        self.trained_turns += sum(turn.trained for turn in turns)
        self.trained_characters += sum(len(turn.content) for turn in turns if turn.trained)
        self.error_turns += sum(bool(turn.error) for turn in turns)
        self.refine_turns += sum(turn.refine for turn in turns)
        self.errors.update(kind for turn in turns for kind in turn.error)
        self.sources[conversation.source] += 1
        self.worlds[conversation.world] += 1


def manifest_path(path: Path) -> Path:
    """Return the manifest's path for a data set: `data.jsonl` -> `data.manifest.json`."""
    return path.with_name(f"{path.stem}.manifest.json")


def write_data(path: Path, conversations: Iterable[Conversation], made: Mapping[str, Any]) -> dict[str, Any]:
    """Write a data set and its manifest, or neither file if writing fails. Return the manifest.

    `made` describes how the data set was made (command, seeds, hashes, refusals). It contains no time and no machine
    name, so that equal calls write identical files.
    """
    counts, digest = Counts(), hashlib.sha256()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    beside = part.with_suffix(".manifest.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            for conversation in conversations:
                line = conversation.to_line().encode()
                file.write(line)
                digest.update(line)
                counts.add(conversation)
        manifest = {
            "schema": SCHEMA,
            "kind": KIND,
            "file": path.name,
            "sha256": digest.hexdigest(),
            "evalharness": __version__,
            "counts": counts.to_json(),
            "made": dict(made),
        }
        beside.write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n", encoding="ascii")
        with exclusive(path.parent):  # no other process may write between the data set and its manifest
            part.replace(path)
            beside.replace(manifest_path(path))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    finally:
        for left in (part, beside):
            with suppress(OSError):  # on a read-only file system, unlink fails as well
                left.unlink()
    return manifest


class _ManifestMade(Stored):
    prompts: dict[str, str] = Field(default={})


class _Manifest(Stored):
    kind: Literal["evalharness training data"]
    sha256: str
    counts: dict[str, Any]
    made: _ManifestMade


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of the data set at `path`; None if there is no valid manifest."""
    try:
        return _Manifest.of(reading.read_known(manifest_path(path))).to_json()
    except ValueError:
        return None
