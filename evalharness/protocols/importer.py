"""Import the prompt texts of another group's protocol from a checkout of their code. The protocol's file
(`prompts/protocols`) says where each text is. Source files of the checkout are parsed, never run or imported."""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from evalharness.base.errors import UserError, nearest
from evalharness.base.paths import prompts_folder, write_whole
from evalharness.base.reading import parse_json, read_bytes
from evalharness.protocol.prompt import SLOT
from evalharness.protocol.published import load_protocol
from evalharness.protocols.texts import (
    FILE,
    all_imported,
    how_to_import,
    read_imported_texts,
    texts_folder,
    texts_sha256,
)

__all__ = ["all_imported", "folder", "how_to_import", "import_texts", "read_imported_texts"]

_LARGEST = 1 << 20
"""Largest file of a checkout in bytes; the largest one that is needed has 33 kB."""
_LONGEST = 100_000
"""Largest number of characters in one text."""
_LISTING = "format_function_call_prompt"
"""Name of AgentGym's function that writes a list of functions as text."""


class _Read(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TextSource(_Read):
    """Where a text is in a checkout: a file, and one of `constant`, `opening`, `functions` and `containing`."""

    file: str
    constant: str | None = None
    """Name of the Python constant that has the text."""
    opening: int | None = None
    """Index of the message in AgentGym's `conversation_start`, or in entry `entry` of its `conversation_start_dict`."""
    entry: str = "REACT"
    worded_by: str | None = None
    """File that defines `format_function_call_prompt`, if the message calls it with the list of functions."""
    functions: bool = False
    """Whether to read the table of functions that a model may call, instead of a text."""
    optional: bool = False
    """Whether the import continues without the text if its file is missing."""
    containing: str | None = None
    """Words that only the wanted string contains, if it is not assigned to a name."""
    slots: list[str] = []
    """Names of all slots (`{name}`) that the text must contain, to detect a changed text."""


class FamilyImport(_Read):
    """Where the texts of one environment family are in a checkout."""

    texts: dict[str, TextSource] = {}
    """Name of a text, or `group.name`, -> where the text is in the checkout."""
    json_: str | None = Field(default=None, alias="json")
    """A JSON file to import, with `system_msg`, `instruction` and `examples`, or with these for each kind of task."""
    facts: dict[str, str | bool] = {}
    """Fixed values that the agent reads beside the texts, such as `noted`."""


class Imports(_Read):
    """The section `imports` of a protocol's file: where `data protocols import` finds the texts."""

    repository: str
    families: dict[str, FamilyImport]


class _MissingTextError(ValueError):
    """A file of the checkout lacks the expected text."""


@dataclass(frozen=True)
class Imported:
    path: Path
    families: Mapping[str, Any]
    sources: Mapping[str, str]
    """File of the checkout -> SHA-256."""
    licence: str | None
    """First line of the licence; None if the checkout has no licence."""


def folder() -> Path:
    """Return the folder with one file NAME.yaml per protocol."""
    return prompts_folder() / "protocols"


def importable() -> dict[str, Imports]:
    """Return the section `imports` of each protocol in `prompts/protocols` that has one."""
    stated = {file.stem: load_protocol(file.stem).imports for file in folder().glob("*.yaml")}
    return {name: Imports.model_validate(imports) for name, imports in stated.items() if imports is not None}


def import_texts(protocol: str, checkout: Path) -> Imported:
    """Import the texts into the user's data folder. Raises UserError."""
    known = importable()
    if protocol not in known:
        raise UserError(f"protocol import {protocol}: no texts to import{nearest(protocol, sorted(known))}")
    source, files, hashes = known[protocol], dict[str, bytes](), dict[str, str]()

    def read(name: str) -> bytes:
        if name not in files:
            files[name] = read_bytes(checkout / name, _LARGEST)
            hashes[name] = hashlib.sha256(files[name]).hexdigest()
        return files[name]

    if not checkout.is_dir():
        raise UserError(f"protocol import: {checkout} is no folder; give a checkout of {source.repository}")
    try:
        families = {family: _read_family(each, read) for family, each in source.families.items()}
        _require_texts(families)
        licence = _read_licence(checkout)
    except FileNotFoundError as error:
        raise UserError(
            f"protocol import: {error.filename} does not exist; give a checkout of {source.repository}"
        ) from None
    except OSError as error:
        raise UserError(f"protocol import: {error.filename}: {error.strerror}") from None
    except (
        ValueError,
        SyntaxError,
        TypeError,
        LookupError,
        AttributeError,
        AssertionError,
        StopIteration,
        RecursionError,
        MemoryError,
    ) as error:
        last = next(reversed(hashes), checkout)
        why = str(error) if isinstance(error, ValueError | SyntaxError) else type(error).__name__
        raise UserError(
            f"protocol import: {checkout / last} does not hold the prompt texts of {protocol} ({why[:200]}); give a "
            f"checkout of {source.repository}"
        ) from None
    title = licence.partition("\n")[0].strip() if licence else None
    kept = {
        "schema": 1,
        "protocol": protocol,
        "repository": source.repository,
        "imported": time.strftime("%Y-%m-%d"),
        "sources": hashes,
        "licence": title,
        "sha256": texts_sha256(families),
        "families": families,
    }
    folder = texts_folder(protocol)
    folder.mkdir(parents=True, exist_ok=True)
    if licence:
        write_whole(folder / "LICENSE", licence)
    write_whole(folder / FILE, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return Imported(folder / FILE, families, hashes, title)


def _read_licence(checkout: Path) -> str | None:
    """Return the text of the licence file; if it is missing, the README's lines with the word licence."""
    for name in ("LICENSE", "README.md"):
        try:
            text = read_bytes(checkout / name, _LARGEST).decode("utf-8", "replace").strip()
        except FileNotFoundError:
            continue
        lines = [line.strip() for line in text.split("\n") if name == "LICENSE" or "licen" in line.lower()]
        if lines:
            return "\n".join(lines)
    return None


def _require_texts(value: Any) -> None:
    """Raise ValueError if a value is neither text nor bool, or if a text is too long."""
    if isinstance(value, Mapping):
        for each in value.values():
            _require_texts(each)
    elif isinstance(value, list):
        for each in value:
            _require_texts(each)
    elif isinstance(value, str):
        if len(value) > _LONGEST:
            raise _MissingTextError(f"a text of {len(value)} characters")
        value.encode()  # raises ValueError for an unpaired surrogate
    elif not isinstance(value, bool):
        raise _MissingTextError(f"{type(value).__name__} where a text should be")


def _find_assignments(tree: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield the values assigned to `name` anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            yield node.value


def _find_constant(tree: ast.AST, name: str) -> str:
    """Return the text assigned to `name`. Variables of an f-string become slots (`{variable}`)."""
    for value in _find_assignments(tree, name):
        if (text := _text(value)) is not None:
            return text
    raise _MissingTextError(f"no text {name}")


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [
            f"{{{part.value.id}}}"
            if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)
            else _text(part)
            for part in node.values
        ]
        return None if None in parts else "".join(map(str, parts))
    return None


def _read_family(places: FamilyImport, read: Callable[[str], bytes]) -> dict[str, Any]:
    texts: dict[str, Any] = {}
    if places.json_ is not None:
        texts = parse_json(read(places.json_))
        kinds = [texts] if "instruction" in texts else list(texts.values())
        if not kinds or any(each.keys() != {"system_msg", "instruction", "examples"} for each in kinds):
            raise _MissingTextError("other keys than system_msg, instruction, examples")
    for name, source in places.texts.items():
        group, _, own = name.rpartition(".")
        try:
            tree = ast.parse(read(source.file))
            worded = ast.parse(read(source.worded_by)) if source.worded_by else None
        except FileNotFoundError:
            if not source.optional:
                raise
            continue
        place = texts.setdefault(group, {}) if group else texts
        place[own] = _read_functions(tree) if source.functions else _text_at(source, tree, worded)
    return {**texts, **places.facts}


def _text_at(source: TextSource, tree: ast.AST, worded: ast.AST | None) -> str:
    if source.constant is not None:
        text = _find_constant(tree, source.constant)
    elif source.opening is not None:
        text = _find_opening(tree, source.entry, worded)[source.opening]
    else:
        text = _find_text(tree, str(source.containing))
    if source.slots and sorted(set(SLOT.findall(text))) != sorted(source.slots):
        raise _MissingTextError(f"a template with other slots than {', '.join(source.slots)}")
    return text


def _find_opening(tree: ast.AST, entry: str, worded: ast.AST | None) -> list[str]:
    """Return the two messages of `conversation_start`, or those of `entry` in `conversation_start_dict`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        value: ast.expr | None = node.value if node.targets[0].id == "conversation_start" else None
        if node.targets[0].id == "conversation_start_dict" and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            value = next((v for k, v in pairs if isinstance(k, ast.Attribute) and k.attr == entry), None)
        if isinstance(value, ast.Tuple):
            messages = [
                _message_text(call.args[0], tree, worded) for call in value.elts if isinstance(call, ast.Call)
            ]
            if len(messages) == 2:
                return messages
    raise _MissingTextError("no opening of a conversation")


def _message_text(message: ast.expr, tree: ast.AST, worded: ast.AST | None) -> str:
    """Return the text in the key `value` of a message, which is a dict literal."""
    assert isinstance(message, ast.Dict)
    pairs = zip(message.keys, message.values, strict=True)
    value = next(v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "value")
    if not isinstance(value, ast.JoinedStr) or worded is None:
        return str(ast.literal_eval(value))
    return "".join(_read_part(part, tree, worded) for part in value.values)


def _read_part(part: ast.expr, tree: ast.AST, worded: ast.AST) -> str:
    """Return the text of a part of an f-string: a literal, or a call that lists the functions."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    call = part.value if isinstance(part, ast.FormattedValue) else part
    if not isinstance(call, ast.Call) or not isinstance(call.args[0], ast.Name):
        raise _MissingTextError("an f-string with other parts than a listing of functions")
    listed = [{"type": "function", "function": each} for each in _literal(tree, call.args[0].id)]
    listing = next(n for n in ast.walk(worded) if isinstance(n, ast.FunctionDef) and n.name == _LISTING)
    texts = "\n".join(json.dumps(each, ensure_ascii=False, indent=2) for each in listed)
    return f"{_find_constant(listing, 'prompt')}{texts}{_find_constant(worded, 'INVOKING_FUNCTION_PROMPT')}"


def _find_text(tree: ast.AST, words: str) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and (text := _text(node)) and words in text:
            return text
    raise _MissingTextError(f"no text with {words!r}")


def _literal(tree: ast.AST, name: str) -> Any:
    for value in _find_assignments(tree, name):
        return ast.literal_eval(value)
    raise _MissingTextError(f"no {name}")


def _read_functions(tree: ast.AST) -> dict[str, Any]:
    """Map each function to its words, the word between two arguments, its keys in JSON, and its parameters."""
    keys, words = _literal(tree, "valid_functions_args"), _literal(tree, "function_to_name")
    joints = _literal(tree, "conjunction_words")
    defined = {
        node.name: node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in keys
    }  # fmt: skip
    return {
        name: {
            "words": words[name],
            "joint": joints.get(name, ""),
            "arguments": keys[name],
            "parameters": {
                each.arg: place < len(defined[name].args) - len(defined[name].defaults)
                for place, each in enumerate(defined[name].args)
            },
        }
        for name in keys
    }
