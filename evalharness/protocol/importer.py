"""Read the prompt texts of another group's protocol out of a checkout of its authors. Its files are parsed as data:
nothing of them is run or imported."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, nearest
from evalharness.base.paths import write_whole
from evalharness.base.reading import parse_json, read_bytes
from evalharness.protocol.texts import FILE, texts_folder, texts_sha256

_LARGEST = 1 << 20
"""Bytes of one of their files; the largest has 33 kB."""
_LONGEST = 100_000
"""Characters of one text."""
Families = dict[str, Any]


class _NotThereError(ValueError):
    """A file of the checkout does not hold what it should."""


@dataclass(frozen=True)
class Source:
    """Where a protocol's texts stand in a checkout."""

    repository: str
    read: Callable[[Callable[[str], bytes]], Families]
    """Given a reader of the checkout's files by their paths, the texts by family."""
    licence: str = "LICENSE"


@dataclass(frozen=True)
class Imported:
    """What an import brought."""

    path: Path
    families: Mapping[str, Any]
    sources: Mapping[str, str]
    """File of the checkout -> SHA-256."""
    licence: str | None
    """First line of the licence; None where the checkout has none."""


def import_texts(protocol: str, checkout: Path) -> Imported:
    """Into the user's data folder. Raises UserError."""
    if protocol not in SOURCES:
        raise UserError(f"protocol import {protocol}: no texts to import{nearest(protocol, sorted(SOURCES))}")
    source, hashes = SOURCES[protocol], dict[str, str]()

    def read(name: str) -> bytes:
        raw = read_bytes(checkout / name, _LARGEST)
        hashes[name] = hashlib.sha256(raw).hexdigest()
        return raw

    if not checkout.is_dir():
        raise UserError(f"protocol import: {checkout} is no folder; give a checkout of {source.repository}")
    try:
        families = source.read(read)
        _require_texts(families)
        licence = _licence(checkout, source.licence)
    except FileNotFoundError as error:
        raise UserError(
            f"protocol import: {error.filename} is not there; give a checkout of {source.repository}"
        ) from None
    except OSError as error:
        raise UserError(f"protocol import: {error.filename}: {error.strerror}") from None
    except (
        ValueError,
        SyntaxError,
        TypeError,
        KeyError,
        AttributeError,
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


def _licence(checkout: Path, name: str) -> str | None:
    try:
        return read_bytes(checkout / name, _LARGEST).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None


def _require_texts(value: Any) -> None:
    """Only texts, and none longer than a prompt."""
    if isinstance(value, Mapping):
        for each in value.values():
            _require_texts(each)
    elif isinstance(value, list):
        for each in value:
            _require_texts(each)
    elif isinstance(value, str):
        if len(value) > _LONGEST:
            raise _NotThereError(f"a text of {len(value)} characters")
        value.encode()  # half a surrogate pair is no text
    elif not isinstance(value, bool):
        raise _NotThereError(f"{type(value).__name__} where a text should be")


def _constant(tree: ast.AST, name: str) -> str:
    """The text that `name` is assigned, wherever that stands; `{name}` for each part of an f-string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            found = _text(node.value)
            if found is not None:
                return found
    raise _NotThereError(f"no text {name}")


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


def _requires(text: str, *slots: str) -> str:
    """`text`, which has exactly these slots."""
    if sorted(set(re.findall(r"\{(\w+)\}", text))) != sorted(slots):
        raise _NotThereError(f"a template with other slots than {', '.join(slots)}")
    return text


def _verl_agent(read: Callable[[str], bytes]) -> Families:
    tree = ast.parse(read("agent_system/environments/prompts/alfworld.py"))
    now = ("current_observation", "admissible_actions")
    past = ("task_description", "step_count", "history_length", "action_history", "current_step")
    return {
        "alfworld": {
            "first": _requires(_constant(tree, "ALFWORLD_TEMPLATE_NO_HIS"), *now),
            "later": _requires(_constant(tree, "ALFWORLD_TEMPLATE"), *now, *past),
        }
    }


_AGENTBOARD = {
    "alfworld": "alfworld_base",
    "babyai": "babyai_vanilla_prompt",
    "jericho": "jericho_vanilla_prompt",
    "pddl": "pddl_vanilla_prompt",
    "sciworld": "scienceworld_base",
}


_AGENTBOARD_FACTS: Mapping[str, Mapping[str, Any]] = {
    "alfworld": {"noted": "put"},
    "jericho": {"noted": "cut"},
    "pddl": {"inventory": False},
}
"""Where its task loops and configurations treat an environment otherwise (`agents.agentboard`)."""


def _agentboard(read: Callable[[str], bytes]) -> Families:
    found: Families = {}
    for family, name in _AGENTBOARD.items():
        own = parse_json(read(f"agentboard/prompts/VanillaAgent/{name}.json"))
        kinds = [own] if "instruction" in own else list(own.values())
        if not kinds or any(each.keys() != {"system_msg", "instruction", "examples"} for each in kinds):
            raise _NotThereError("other keys than system_msg, instruction, examples")
        found[family] = {**own, **_AGENTBOARD_FACTS.get(family, {})}
    return found


def _agentgym(read: Callable[[str], bytes]) -> Families:
    return {
        family: dict(_agentgym_family(ast.parse(read(f"agentenv/agentenv/envs/{family}.py"))))
        for family in ("alfworld", "babyai", "sciworld")
    }


def _agentgym_family(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Instruction, answer, and what a reply with two actions gets."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        value: ast.expr | None = node.value if node.targets[0].id == "conversation_start" else None
        if node.targets[0].id == "conversation_start_dict" and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            value = next(v for k, v in pairs if isinstance(k, ast.Attribute) and k.attr == "REACT")
        if isinstance(value, ast.Tuple):
            said = [
                ast.literal_eval(call.args[0])["value"] for call in value.elts if isinstance(call, ast.Call)
            ]
            yield from zip(("instruction", "answer"), said, strict=True)
            break
    else:
        raise _NotThereError("no opening of a conversation")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and str(node.value).startswith("Error: Only one"):
            yield "refusal", str(node.value)


def _tales(read: Callable[[str], bytes]) -> Families:
    plain, react = ast.parse(read("agents/llm.py")), ast.parse(read("agents/react.py"))
    kinds = {
        "zero_shot": {"system": _constant(plain, "SYSTEM_PROMPT"), "truncated": _truncated(plain)},
        "react": {
            "system": _constant(react, "SYSTEM_PROMPT"),
            "truncated": _truncated(react),
            "question": _constant(react, "question"),
            "prompt": _constant(react, "prompt"),
        },
    }
    return dict.fromkeys(("alfworld", "jericho", "sciworld"), kinds)


def _truncated(tree: ast.AST) -> str:
    """The text in brackets that takes the place of an old observation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and (text := _text(node)) and "truncated" in text:
            return _requires(text, "limit")
    raise _NotThereError("no line for a truncated history")


SOURCES: Mapping[str, Source] = {
    "agentboard": Source("https://github.com/hkust-nlp/AgentBoard", _agentboard),
    "agentgym": Source("https://github.com/WooooDyy/AgentGym", _agentgym),
    "tales": Source("https://github.com/microsoft/tale-suite", _tales),
    "verl-agent": Source("https://github.com/langfengQ/verl-agent", _verl_agent),
}
"""Protocols whose texts are others'."""
