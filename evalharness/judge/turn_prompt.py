"""Build the request to judge a turn from `prompts/judge/turn.yaml`.

Texts of the episode are quoted and escaped, so that the judge cannot take them for instructions.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from evalharness.base.errors import UserError
from evalharness.base.paths import prompts_folder
from evalharness.judge.draw import DrawnTurn
from evalharness.judge.verdict import KINDS
from evalharness.protocol.prompt import Message, read_prompt_file
from evalharness.records.episode import Turn

EARLIER_TURNS = 8
"""Largest number of earlier turns that the judge sees before the judged turn."""
_LONGEST = 1500
"""Longest quoted text in characters. The description of a ScienceWorld room has about 1,200."""
_LONGEST_EARLIER = 600


class StrictFile(BaseModel):
    """A prompt file of `prompts/judge/`; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: int
    """Version number of the text, for readers; a comparison of runs uses the file's hash."""
    system: str


class TurnPromptFile(StrictFile):
    instruction: str
    kinds: dict[str, str]
    format: str


_File = TypeVar("_File", bound=StrictFile)


def read_prompt(kind: type[_File], name: str, folder: Path | None) -> tuple[_File, dict[str, Any]]:
    """Read the prompt file `name` from `folder`, or from `prompts/judge` if the folder does not have it. Also return
    the name, version and hash for the manifest.

    Raises UserError that names the file and the error.
    """
    _, file, sha256 = read_prompt_file(prompts_folder() / "judge" / name, kind, folder)
    return file, {"name": name, "version": file.version, "sha256": sha256}


@dataclass(frozen=True)
class TurnPrompt:
    file: TurnPromptFile
    facts: dict[str, Any]
    """Name, version and SHA-256 of the file."""

    def messages(self, drawn: DrawnTurn) -> list[Message]:
        """Return the request. Texts that are equal for all turns come first, for the server's prefix cache."""
        kinds = "\n".join(f"- {name}: {self.file.kinds[name]}" for name in KINDS)
        fixed = [self.file.instruction.strip(), kinds, self.file.format.strip()]
        return [
            {"role": "system", "content": self.file.system.strip()},
            {"role": "user", "content": "\n\n".join([*fixed, "\n".join(quote_turn(drawn))])},
        ]


def quote_turn(drawn: DrawnTurn) -> list[str]:
    """Return the lines of the request: the goal, the earlier turns, and the turn to judge, with every text quoted."""
    before, (*earlier, judged) = drawn.since(EARLIER_TURNS)
    lines = [f"goal: {quote(clip(drawn.episode.goal, _LONGEST))}"]
    if left_out := drawn.number - 1 - len(earlier):
        lines.append(f"({left_out} turns left out)")
    lines.append(f"observation before: {quote(clip(before, _LONGEST_EARLIER))}")
    for turn in earlier:
        lines += _turn_lines(turn, _LONGEST_EARLIER)
    lines.append(f"The turn to judge is turn {drawn.number}:")
    return lines + _turn_lines(judged, _LONGEST)


def _turn_lines(turn: Turn, longest: int) -> list[str]:
    name = f"turn {turn.turn}"
    if turn.action is None:
        lines = [f"{name} reply (no action could be read): {quote(clip(turn.reply, longest))}"]
    else:
        lines = [f"{name} thought: {quote(clip(turn.thought, longest))}"] if turn.thought else []
        lines.append(f"{name} action: {quote(clip(turn.action, longest))}")
    return [*lines, f"{name} observation: {quote(clip(turn.observation, longest))}"]


def load_turn_prompt(folder: Path | None = None) -> TurnPrompt:
    """Read the prompt file. Raises UserError."""
    file, facts = read_prompt(TurnPromptFile, "turn.yaml", folder)
    if sorted(file.kinds) != sorted(KINDS):
        raise UserError(f"prompt file turn.yaml has to describe these kinds of error: {', '.join(KINDS)}")
    return TurnPrompt(file, facts)


_MARKUP = re.compile(r"<|\[(?=/?[A-Za-z]*[A-Z_]{2,}\])")
"""The beginning of a chat template's control token: `<|im_end|>`, `</s>`, `[INST]`, `[gMASK]`. It is escaped, because a
server turns such text into the control token even inside quotation marks."""


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def quote(text: str) -> str:
    """Return `text` as a JSON string on one line. Quotation marks, line breaks, invisible characters and the
    beginnings of control tokens are escaped; `json.loads` restores `text`."""
    plain = json.dumps(text, ensure_ascii=False)
    plain = "".join(c if c.isprintable() else _escape(c) for c in plain)
    return _MARKUP.sub(lambda match: _escape(match[0]), plain)


def clip(text: str, longest: int) -> str:
    """Shorten `text` to its first and last `longest / 2` characters, with a note of how many were left out."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} ... [{len(text) - 2 * half} characters left out] ... {text[-half:]}"
