"""Judge prompts in FastChat's layout (`judge_prompts.jsonl`). The user supplies this file. Four of its prompts are
used: `single-v1`, and `single-math-v1` for questions with a reference answer, grade the first answer; the same names
with `-multi-turn` grade the second. The grade is the number in `[[ ]]`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.judge.answers import UnusableReplyError, read, sentence
from evalharness.judge.grading import HIGHEST, LOWEST, Grade
from evalharness.judge.questions import TwoTurnQuestion, objects_of, raw_of
from evalharness.models.many_requests import Answer
from evalharness.protocol.prompt import Message, fill_template

LAYOUT = "fastchat"
WITH_REFERENCE = frozenset({"math", "reasoning", "coding"})
"""Categories whose answers are graded with a reference answer."""
_NAMES = {
    (1, False): "single-v1",
    (1, True): "single-math-v1",
    (2, False): "single-v1-multi-turn",
    (2, True): "single-math-v1-multi-turn",
}
"""(turn, whether there is a reference answer) -> name of the prompt."""
_RATING = (re.compile(r"\[\[(\d+(?:\.\d+)?)\]\]"), re.compile(r"\[(\d+(?:\.\d+)?)\]"))


@dataclass(frozen=True)
class _Template:
    system: str
    user: str


@dataclass(frozen=True)
class FastChatPrompts:
    templates: Mapping[str, _Template]
    facts: dict[str, Any]
    response_format: None = None
    """No JSON schema is requested: FastChat's judge replies in prose, with the grade in brackets."""

    def messages(self, question: TwoTurnQuestion, turn: int, answers: tuple[str, ...]) -> list[Message]:
        """Return the request. `answers` has the answers up to turn `turn` (from 1); the last one is graded."""
        with_reference = question.category in WITH_REFERENCE
        template = self.templates[_NAMES[turn, with_reference]]
        slots = {"question": question.turns[0], "answer": answers[0]}
        for number, text in enumerate(answers, 1):
            slots |= {f"question_{number}": question.turns[number - 1], f"answer_{number}": text}
        slots |= {
            f"ref_answer_{i}": text for i, text in enumerate(question.references, 1) if text is not None
        }
        user = fill_template(template.user, **slots)
        return [{"role": "system", "content": template.system}, {"role": "user", "content": user}]

    def read(self, answer: Answer) -> Grade:
        try:
            return read(answer, _grade)
        except UnusableReplyError as error:
            return Grade(None, str(error))

    def require_references(self, questions: tuple[TwoTurnQuestion, ...]) -> None:
        """Raise UserError before any question is asked, if a reference answer is missing."""
        for question in questions:
            if question.category in WITH_REFERENCE and None in question.references:
                raise UserError(
                    f"question {question.id} is of category {question.category}, which these prompts grade beside a "
                    "reference answer; give --references FILE (FastChat's reference_answer/gpt-4.jsonl)"
                )


def _grade(text: str) -> Grade:
    grade = next((match for rule in _RATING if (match := rule.search(text))), None)
    if grade is None:
        raise UnusableReplyError("no grade in [[ ]]")
    rating = float(grade[1])
    if not LOWEST <= rating <= HIGHEST:
        raise UnusableReplyError(f"the rating is not between {LOWEST} and {HIGHEST}")
    return Grade(rating, sentence(text))


def load_fastchat_prompts(path: Path) -> FastChatPrompts:
    """Read the prompts. Raises UserError that names the wrong line or the missing prompt."""
    raw = raw_of(path, "--judge-prompts")
    templates: dict[str, _Template] = {}
    for number, value in objects_of(raw, path.name):
        name, system, user = (value.get(key) for key in ("name", "system_prompt", "prompt_template"))
        if name not in _NAMES.values():
            continue
        if not isinstance(system, str) or not isinstance(user, str):
            raise UserError(f"{path.name}, line {number}: system_prompt and prompt_template have to be texts")
        if value.get("output_format", "[[rating]]") != "[[rating]]":
            raise UserError(f"{path.name}, line {number}: the output format is not [[rating]]")
        templates[str(name)] = _Template(system, user)
    if missing := [name for name in _NAMES.values() if name not in templates]:
        raise UserError(
            f"--judge-prompts {path}: no prompt {', '.join(missing)} (FastChat's judge_prompts.jsonl)"
        )
    facts = {"layout": LAYOUT, "name": path.name, "sha256": hashlib.sha256(raw).hexdigest()}
    return FastChatPrompts(templates, facts)
