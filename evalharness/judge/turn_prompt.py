"""What a judge is asked about a turn: `prompts/judge/turn.yaml` made into messages.

Somebody else's text is quoted in them so that it cannot end its quotation.
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
"""Turns before the one that is judged, at most."""
_LONGEST = 1500
"""Characters of one text. A room of ScienceWorld has about 1,200."""
_LONGEST_EARLIER = 600


class StrictFile(BaseModel):
    """A prompt file of `prompts/judge/`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: int
    """Raised whenever the text changes; the hash says the same, for machines."""
    system: str


class TurnPromptFile(StrictFile):
    instruction: str
    kinds: dict[str, str]
    format: str


_File = TypeVar("_File", bound=StrictFile)


def read_prompt(kind: type[_File], name: str, folder: Path | None) -> tuple[_File, dict[str, Any]]:
    """`name` of `folder` where that holds it, else ours; and what a manifest says of it: name, version, hash.

    Raises UserError naming the file and what is wrong in it.
    """
    _, file, sha256 = read_prompt_file(prompts_folder() / "judge" / name, kind, folder)
    return file, {"name": name, "version": file.version, "sha256": sha256}


@dataclass(frozen=True)
class TurnPrompt:
    file: TurnPromptFile
    facts: dict[str, Any]
    """Name, version and SHA-256 of the file."""

    def messages(self, drawn: DrawnTurn) -> list[Message]:
        """What is the same for all turns comes first, for the server's prefix cache; then the turn, quoted."""
        kinds = "\n".join(f"- {name}: {self.file.kinds[name]}" for name in KINDS)
        fixed = [self.file.instruction.strip(), kinds, self.file.format.strip()]
        return [
            {"role": "system", "content": self.file.system.strip()},
            {"role": "user", "content": "\n\n".join([*fixed, "\n".join(quoted_turn(drawn))])},
        ]


def quoted_turn(drawn: DrawnTurn) -> list[str]:
    """The goal, the turns before, and the turn itself with the environment's answer: a line each, every text quoted."""
    before, (*earlier, judged) = drawn.since(EARLIER_TURNS)
    lines = [f"goal: {quoted(clipped(drawn.episode.goal, _LONGEST))}"]
    if left_out := drawn.number - 1 - len(earlier):
        lines.append(f"({left_out} turns left out)")
    lines.append(f"observation before: {quoted(clipped(before, _LONGEST_EARLIER))}")
    for turn in earlier:
        lines += _turn_lines(turn, _LONGEST_EARLIER)
    lines.append(f"The turn to judge is turn {drawn.number}:")
    return lines + _turn_lines(judged, _LONGEST)


def _turn_lines(turn: Turn, longest: int) -> list[str]:
    name = f"turn {turn.turn}"
    if turn.action is None:
        said = [f"{name} reply (no action could be read): {quoted(clipped(turn.reply, longest))}"]
    else:
        said = [f"{name} thought: {quoted(clipped(turn.thought, longest))}"] if turn.thought else []
        said.append(f"{name} action: {quoted(clipped(turn.action, longest))}")
    return [*said, f"{name} observation: {quoted(clipped(turn.observation, longest))}"]


def load_turn_prompt(folder: Path | None = None) -> TurnPrompt:
    """Raises UserError."""
    file, facts = read_prompt(TurnPromptFile, "turn.yaml", folder)
    if sorted(file.kinds) != sorted(KINDS):
        raise UserError(f"prompt file turn.yaml has to describe these kinds of error: {', '.join(KINDS)}")
    return TurnPrompt(file, facts)


_MARKUP = re.compile(r"<|\[(?=/?[A-Za-z]*[A-Z_]{2,}\])")
"""What begins a control token of a chat template: `<|im_end|>`, `</s>`, `[INST]`, `[gMASK]`. Servers turn such text
into the token itself, which no quotation mark could hold."""


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def quoted(text: str) -> str:
    """`text` as a JSON string on one line. Quotation marks, line breaks, invisible characters and the beginnings of
    control tokens are escaped; `json.loads` gives `text` back."""
    plain = json.dumps(text, ensure_ascii=False)
    plain = "".join(c if c.isprintable() else _escaped(c) for c in plain)
    return _MARKUP.sub(lambda found: _escaped(found[0]), plain)


def clipped(text: str, longest: int) -> str:
    """At most `longest` characters: the beginning and the end of a longer one, and how much is left out between."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} ... [{len(text) - 2 * half} characters left out] ... {text[-half:]}"
