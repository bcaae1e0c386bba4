"""The one format of training data: a conversation a line, with what is trained and what went wrong on each turn.

A data set is a file of JSON lines and, beside it, a manifest (`data.jsonl`, `data.manifest.json`). The file is ASCII:
what a model wrote is escaped, so that NUL, lone surrogates and direction marks survive and reach no terminal.
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
    """Does not fit the format; the message says how."""


@dataclass(frozen=True)
class MarkedMessage:
    role: Role
    content: str
    loss: StrictBool | None = None
    """Of an assistant's message: whether it is trained. None on the others; on an assistant's it means trained."""
    error: tuple[str, ...] = ()
    """Kinds of error in an assistant's turn (`parameter`, `place`, `logic`, ...); empty where it was right."""
    refine: StrictBool = False
    """The first right turn after a run of errors."""

    @property
    def trained(self) -> bool:
        return self.role == "assistant" and self.loss is not False

    def to_json(self) -> dict[str, Any]:
        """`loss`, `error` and `refine` are there on assistant's messages alone."""
        if self.role != "assistant":
            return {"role": self.role, "content": self.content}
        return {**vars(self), "loss": self.trained, "error": list(self.error)}

    def checked(self) -> MarkedMessage:
        """As it is stored: an assistant's message says whether it is trained, another says nothing of it. Raises
        UnfitError."""
        if self.role == "assistant":
            return self if self.loss is not None else replace(self, loss=True)
        if self.loss or self.error or self.refine:
            raise UnfitError(f"a message of role {self.role} has loss, error or refine")
        return self if self.loss is None else replace(self, loss=None)


@dataclass(frozen=True)
class Conversation:
    """One conversation. Frozen; `metadata` is JSON data that nobody changes."""

    id: str
    """Names the conversation within its data set: `grounded/babyai/open-100/017/0`."""
    source: str
    """What made it: `grounded`, `from-runs`, `trajectories`, `general`, or a name the user gave."""
    world: str
    """The environment's family, or the persona's world; `` for general conversations."""
    task_hash: Annotated[str | None, Field(default=None)]
    """Content hash of the task it was played on; None where there is no task."""
    messages: Annotated[tuple[MarkedMessage, ...], Field(min_length=1)]
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def player_turns(self) -> tuple[MarkedMessage, ...]:
        return tuple(message for message in self.messages if message.role == "assistant")

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "messages": [message.to_json() for message in self.messages]}

    @classmethod
    def from_json(cls, data: object) -> Conversation:
        """Raises UnfitError."""
        try:
            conversation = _CONVERSATION.validate_python(data)
        except ValidationError as error:
            # Without the message's number: what is wrong is counted by its name.
            raise UnfitError(re.sub(r"\.\d+", "", why(error))) from None
        return replace(conversation, messages=tuple(message.checked() for message in conversation.messages))

    def retold(self, messages: tuple[MarkedMessage, ...]) -> Conversation:
        """With other messages, and without the metadata by turn, which is not true of them."""
        by_turn = ("without_errors", "progress", "valid")
        kept = {key: value for key, value in self.metadata.items() if key not in by_turn}
        return replace(self, messages=messages, metadata=kept)

    def line(self) -> str:
        return json.dumps(self.to_json(), ensure_ascii=True, separators=(",", ":")) + "\n"


_CONVERSATION = TypeAdapter(Conversation)


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokenLine:
    number: int
    """From 1."""
    why: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.why}"


def parse_json(text: str | bytes) -> Any:
    """`reading.parse_json`. Raises UnfitError where that raises ValueError."""
    try:
        return reading.parse_json(text)
    except ValueError as error:
        raise UnfitError(f"not JSON ({str(error).splitlines()[0][:120]})") from None


def read_data(path: Path, broken: list[BrokenLine]) -> Iterator[Conversation]:
    """The conversations of a data set in the file's order, one at a time; lines that hold none go to `broken`.

    A last line without its end that does not parse was torn by a kill and is named so. Raises UserError where the
    file cannot be read.
    """
    with system_errors(f"cannot read {path}"), open_file(path) as file:
        for number, line in enumerate(lines_of(file), 1):
            if not line.strip():
                continue
            try:
                yield Conversation.from_json(parse_json(line))
            except UnfitError as error:
                why = str(error) if line.endswith(b"\n") else f"torn: the file ends in it ({error})"
                broken.append(BrokenLine(number, why))


def none_found(path: Path, broken: list[BrokenLine]) -> UserError:
    """Of a data set all of whose lines are broken, or that has none."""
    first = f" ({broken[0]})" if broken else ""
    return UserError(
        f"{path} holds no conversation in our layout{first}; data in another layout is taken by: "
        f"evalharness refine read {path} -o data.jsonl"
    )


def say_broken(path: Path, broken: list[BrokenLine], most: int = 3) -> list[str]:
    """Lines for the person at the terminal: how many are broken, and the first of them. None where all are whole."""
    if not broken:
        return []
    lines = [f"{path}: {len(broken):,} broken line{'s' * (len(broken) != 1)} left out"]
    return lines + [f"  {line}" for line in broken[:most]] + ["  ..."] * (len(broken) > most)


# --- writing -----------------------------------------------------------------------------------------------------


class Counted:
    """Public fields as JSON, what is counted by name in the order of the names."""

    def to_json(self) -> dict[str, Any]:
        return {name: _in_order(value) for name, value in vars(self).items() if not name.startswith("_")}


def _in_order(value: object) -> object:
    if isinstance(value, Counter):
        return dict(sorted(value.items()))
    return sorted(value) if isinstance(value, set) else value


@dataclass
class Counts(Counted):
    """What a data set holds, counted while it is written."""

    samples: int = 0  # conversations, under the name that manifests have for them
    messages: int = 0
    player_turns: int = 0
    trained_turns: int = 0
    trained_characters: int = 0
    """Of the trained turns: what two data sets of equally many conversations can differ in."""
    error_turns: int = 0
    refine_turns: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Kind of error -> turns."""
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
    """`data.jsonl` -> `data.manifest.json`."""
    return path.with_name(f"{path.stem}.manifest.json")


def write_data(path: Path, conversations: Iterable[Conversation], made: Mapping[str, Any]) -> dict[str, Any]:
    """Write a data set and its manifest, at once or not at all; returns the manifest.

    `made` says how it was made (command, seeds, hashes, what was refused); no time and no machine, so that the same
    call writes the same bytes.
    """
    counts, digest = Counts(), hashlib.sha256()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    beside = part.with_suffix(".manifest.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            for conversation in conversations:
                line = conversation.line().encode()
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
        with exclusive(path.parent):  # no other process is between a data set and its manifest
            part.replace(path)
            beside.replace(manifest_path(path))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    finally:
        for left in (part, beside):
            with suppress(OSError):  # a file system that cannot be written refuses this, too
                left.unlink()
    return manifest


class _Made(Stored):
    prompts: dict[str, str] = Field(default={})


class _Manifest(Stored):
    kind: Literal["evalharness training data"]
    sha256: str
    counts: dict[str, Any]
    made: _Made


def read_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest of the data set at `path`; None if there is none of this shape."""
    try:
        return _Manifest.of(reading.read_known(manifest_path(path))).to_json()
    except ValueError:
        return None
