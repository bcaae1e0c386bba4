"""Build the request to grade an answer, and read the grade from the judge's reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.judge.answers import REASON, UnusableReplyError, read, read_object, response_format, sentence
from evalharness.judge.questions import TwoTurnQuestion
from evalharness.judge.turn_prompt import StrictFile, clip, quote, read_prompt
from evalharness.models.many_requests import Answer
from evalharness.protocol.prompt import Message

LOWEST, HIGHEST = 1, 10
GRADE_FORMAT = response_format(
    "grade", {"reason": REASON, "rating": {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}}
)
_LONGEST = 12_000
"""Largest number of characters of one answer in the request; 1,024 tokens have about 4,000 characters."""


class GradePromptFile(StrictFile):
    instruction: str
    reference: str
    """Part of the prompt that is included if the question has a reference answer."""
    format: str


@dataclass(frozen=True)
class Grade:
    rating: float | None
    """The grade; None if it could not be read. Answers without a grade are not part of the mean."""
    note: str
    """The judge's explanation, or the reason why no grade could be read."""


def read_grade(line: Mapping[str, Any]) -> Grade:
    """Read a line of `grades.jsonl`. Raises ValueError for a wrong value, KeyError for a missing one."""
    rating = line["rating"]
    if rating is not None and not (type(rating) in (int, float) and LOWEST <= rating <= HIGHEST):
        raise ValueError(f"the rating is no number from {LOWEST} to {HIGHEST}")
    return Grade(rating, str(line["note"]))


@dataclass(frozen=True)
class GradePrompt:
    file: GradePromptFile
    facts: dict[str, Any]
    response_format: Mapping[str, Any] | None = field(default_factory=lambda: GRADE_FORMAT)

    def read(self, answer: Answer) -> Grade:
        """Read the grade, a whole number from 1 to 10, from the JSON object that has the key `rating`."""
        try:
            value = read(answer, lambda text: read_object(text, "rating"))
        except UnusableReplyError as error:
            return Grade(None, str(error))
        rating = value["rating"]
        if isinstance(rating, float) and rating.is_integer():
            rating = int(rating)
        if not isinstance(rating, int) or isinstance(rating, bool) or not LOWEST <= rating <= HIGHEST:
            return Grade(None, f"the rating is no whole number from {LOWEST} to {HIGHEST}")
        return Grade(rating, sentence(value.get("reason")))

    def messages(self, question: TwoTurnQuestion, turn: int, answers: tuple[str, ...]) -> list[Message]:
        """Return the request. `answers` has the answers up to turn `turn` (from 1); the last one is graded."""
        reference = question.references[turn - 1]
        lines = []
        for number in range(1, turn + 1):
            lines.append(f"question {number}: {quote(question.turns[number - 1])}")
            name = "answer to grade" if number == turn else f"answer {number}"
            if number == turn and reference is not None:
                lines.append(f"reference answer {number}: {quote(reference)}")
            lines.append(f"{name}: {quote(clip(answers[number - 1], _LONGEST))}")
        fixed = [
            self.file.instruction,
            self.file.reference if reference is not None else "",
            self.file.format,
        ]
        parts = [part.strip() for part in fixed if part]
        return [
            {"role": "system", "content": self.file.system.strip()},
            {"role": "user", "content": "\n\n".join([*parts, "\n".join(lines)])},
        ]


def load_grade_prompt(folder: Path | None = None) -> GradePrompt:
    """Read the prompt file. Raises UserError."""
    return GradePrompt(*read_prompt(GradePromptFile, "grade.yaml", folder))
