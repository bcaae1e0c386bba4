"""Verdicts on turns. A rater is a model, a person, or a rule that reads the simulator's observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

TurnKey = tuple[str, int, int]
"""(task id, sample, turn from 1)"""

KINDS = ("format", "parameter", "place", "logic", "plan")
"""Kinds of error, explained in `prompts/judge/turn.yaml` and docs/judges.md. `parameter`, `place` and `logic` are
AgentRefine's. We add `format` for a reply without an action, and `plan` for a valid action without a purpose."""
LONGEST_NOTE = 2000


@dataclass(frozen=True)
class Verdict:
    """A rater's verdict on one turn."""

    wrong: bool | None
    """Whether the turn is wrong; None if no verdict could be read. Turns with None are counted separately."""
    kind: str | None = None
    """The kind of error if the rater named one of `KINDS`. For the simulator, the name of its rule."""
    note: str = ""
    """The judge's explanation, the person's note, or the reason why no verdict could be read."""
    turn_sha256: str | None = field(default=None, compare=False)
    """Hash of the judged turn (`DrawnTurn.sha256`); None if the rater's file does not have hashes."""

    @property
    def word(self) -> str:
        return "no verdict" if self.wrong is None else "wrong" if self.wrong else "right"


def check_verdict(wrong: object, kind: object, note: object) -> Verdict:
    """Check a verdict from a file or a page. Raises ValueError saying what is wrong."""
    if wrong is not None and not isinstance(wrong, bool):
        raise ValueError("a turn is right or wrong")
    if kind is not None and kind not in KINDS:
        raise ValueError(f"there is no kind {str(kind)[:40]!r}; there are: {', '.join(KINDS)}")
    if kind is not None and wrong is not True:
        raise ValueError("only a wrong turn has a kind of error")
    if not isinstance(note, str) or len(note) > LONGEST_NOTE:
        raise ValueError(f"a note is text of at most {LONGEST_NOTE} characters")
    return Verdict(wrong, kind, replace_surrogates(note))


def verdict_of(line: Mapping[str, Any]) -> tuple[TurnKey, Verdict]:
    """Read a line of judgements or labels. Raises ValueError, KeyError or TypeError."""
    key = (str(line["task_id"]), int(line["sample"]), int(line["turn"]))
    verdict = check_verdict(line["wrong"], line["kind"], line["note"])
    return key, replace(verdict, turn_sha256=line.get("turn_sha256"))


@dataclass(frozen=True)
class Rater:
    """All verdicts of one rater on a run."""

    name: str
    verdicts: Mapping[TurnKey, Verdict]
    families: Mapping[TurnKey, str] = field(default_factory=dict)
    """Environment family of each turn; empty if the rater's file does not have families."""
    run_digest: str | None = None
    """Hash of the judged run; None if the rater's file does not name a run."""
    draws: tuple[tuple[int | None, int], ...] = ()
    """(number of turns, seed) of each random sample of turns that the rater was asked to judge."""
    missing: int = 0
    """Number of turns that the rater was asked to judge but that have no verdict, because judging was stopped early."""


def add_folder_names(raters: Sequence[Rater], folders: Sequence[str]) -> list[Rater]:
    """Add the folder's name to raters with the same name: one model may judge with two prompts."""
    names = [rater.name for rater in raters]
    return [
        replace(rater, name=f"{rater.name} ({folder})") if names.count(rater.name) > 1 else rater
        for rater, folder in zip(raters, folders, strict=True)
    ]


def replace_surrogates(text: str) -> str:
    """Replace unpaired surrogates by question marks: JSON can contain them, but UTF-8 files cannot."""
    return text.encode("utf-8", "replace").decode()


def format_key(key: TurnKey) -> str:
    """Return `babyai/open/003 #1 turn 7`, a turn's name in messages."""
    task_id, sample, turn = key
    return f"{task_id} #{sample} turn {turn}"
