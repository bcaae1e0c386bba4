"""Read two-turn questions in the format of MT-bench (FastChat): JSON lines of question_id, category, turns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import parse_json, read_bytes

_LARGEST = 50 << 20
"""Largest size in bytes of a file of questions, reference answers or prompts."""
TURNS = 2
TEMPERATURES = {
    **{"writing": 0.7, "roleplay": 0.7, "extraction": 0.0, "math": 0.0},
    **{"coding": 0.0, "reasoning": 0.0, "stem": 0.1, "humanities": 0.1},
}
"""Temperature of the answers by category, as in MT-bench; other categories are answered greedily."""


@dataclass(frozen=True)
class TwoTurnQuestion:
    id: str
    category: str
    turns: tuple[str, str]
    references: tuple[str | None, str | None] = (None, None)

    @property
    def temperature(self) -> float:
        return TEMPERATURES.get(self.category, 0.0)


@dataclass(frozen=True)
class QuestionSet:
    name: str
    questions: tuple[TwoTurnQuestion, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Name and SHA-256 of the files that were read, for the manifest."""


def objects_of(raw: bytes, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, JSON object) of each non-empty line. Raises UserError."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error}") from None
    # splitlines would also split at U+2028 and similar characters, which a JSON string may contain.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
            if not isinstance(value, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from None
        yield number, value


def raw_of(path: Path, option: str) -> bytes:
    """Read a file. Raises UserError."""
    with system_errors(f"cannot read {option} {path}"):
        return read_bytes(path, _LARGEST)


def _two_texts(value: object) -> tuple[str, str] | None:
    if not isinstance(value, list) or len(value) != TURNS or not all(isinstance(each, str) for each in value):
        return None
    return value[0], value[1]


def read_questions(path: Path | None, references: Path | None = None) -> QuestionSet:
    """Read the questions of `path`; None means the built-in ones. `references` is a file of reference answers
    (FastChat's `reference_answer/*.jsonl`).

    Raises UserError naming the file and the wrong line.
    """
    if path is None:
        raw, name = (files("evalharness.judge") / "questions.jsonl").read_bytes(), "evalharness"
    else:
        raw, name = raw_of(path, "--questions"), path.name
    questions_by_id: dict[str, TwoTurnQuestion] = {}
    for number, value in objects_of(raw, name):
        question = _question(value, f"{name}, line {number}")
        if question.id in questions_by_id:
            raise UserError(f"{name}, line {number}: question {question.id} occurs twice")
        questions_by_id[question.id] = question
    if not questions_by_id:
        raise UserError(f"{name} holds no questions")
    facts = {"name": name, "sha256": hashlib.sha256(raw).hexdigest()}
    if references is not None:
        raw = raw_of(references, "--references")
        facts["references_sha256"] = hashlib.sha256(raw).hexdigest()
        for number, value in objects_of(raw, references.name):
            key = str(value.get("question_id"))
            if key in questions_by_id:  # the file may have references for other questions, too
                answers = _reference(value, f"{references.name}, line {number}")
                questions_by_id[key] = replace(questions_by_id[key], references=answers)
    return QuestionSet(name, tuple(questions_by_id.values()), facts)


def _question(value: Mapping[str, Any], where: str) -> TwoTurnQuestion:
    key, category, turns = value.get("question_id"), value.get("category"), _two_texts(value.get("turns"))
    if not isinstance(key, int | str) or isinstance(key, bool) or not str(key).strip():
        raise UserError(f"{where}: no question_id")
    if not isinstance(category, str) or not category.strip():
        raise UserError(f"{where}: no category")
    if turns is None or not all(turn.strip() for turn in turns):
        raise UserError(f"{where}: turns has to be a list of two texts")
    return TwoTurnQuestion(
        str(key), category.strip(), turns, _two_texts(value.get("reference")) or (None, None)
    )


def _reference(value: Mapping[str, Any], where: str) -> tuple[str, str]:
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    turns = _two_texts(first.get("turns")) if isinstance(first, dict) else None
    if turns is None:
        raise UserError(f"{where}: choices[0].turns has to be a list of two texts")
    return turns
