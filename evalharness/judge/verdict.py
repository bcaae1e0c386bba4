"""What a rater says of a turn: a model, a person, or the simulator by rule. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

TurnKey = tuple[str, int, int]
"""(task id, sample, turn from 1)"""

KINDS = ("format", "parameter", "place", "logic", "plan")
"""Of error, each with a meaning in `prompts/judge/turn.yaml` and docs/judges.md. `parameter`, `place` and `logic` are
AgentRefine's; it has no word for a reply without an action, nor for one that is possible and serves no purpose."""
LONGEST_NOTE = 2000


@dataclass(frozen=True)
class Verdict:
    """One turn, judged."""

    wrong: bool | None
    """None: no verdict could be read. That is counted, and never taken for either."""
    kind: str | None = None
    """One of `KINDS` where the turn is wrong and the rater said so; of the simulator, which part of the rule."""
    note: str = ""
    """The judge's sentence, the person's note, or why no verdict could be read."""
    turn_sha256: str | None = field(default=None, compare=False)
    """What was judged (`DrawnTurn.sha256`); None where the rater's file does not tell."""

    @property
    def word(self) -> str:
        return "no verdict" if self.wrong is None else "wrong" if self.wrong else "right"


def checked(wrong: object, kind: object, note: object) -> Verdict:
    """A verdict from a file or a page. Raises ValueError saying what is wrong with it."""
    if wrong is not None and not isinstance(wrong, bool):
        raise ValueError("a turn is right or wrong")
    if kind is not None and kind not in KINDS:
        raise ValueError(f"there is no kind {str(kind)[:40]!r}; there are: {', '.join(KINDS)}")
    if kind is not None and wrong is not True:
        raise ValueError("only a wrong turn has a kind of error")
    if not isinstance(note, str) or len(note) > LONGEST_NOTE:
        raise ValueError(f"a note is text of at most {LONGEST_NOTE} characters")
    return Verdict(wrong, kind, writable(note))


def verdict_of(line: Mapping[str, Any]) -> tuple[TurnKey, Verdict]:
    """Of a line of judgements or labels. Raises ValueError, KeyError or TypeError."""
    key = (str(line["task_id"]), int(line["sample"]), int(line["turn"]))
    verdict = checked(line["wrong"], line["kind"], line["note"])
    return key, replace(verdict, turn_sha256=line.get("turn_sha256"))


@dataclass(frozen=True)
class Rater:
    """Everything that one rater said of a run."""

    name: str
    verdicts: Mapping[TurnKey, Verdict]
    families: Mapping[TurnKey, str] = field(default_factory=dict)
    """Of the turns; empty where the rater's file does not tell."""
    run_digest: str | None = None
    """Of the run that was judged; None where the rater's file does not tell."""
    draws: tuple[tuple[int | None, int], ...] = ()
    """(turns, seed) of each draw of turns that it was given."""
    missing: int = 0
    """Drawn turns of which its folder holds nothing: it was ended early, or its file was cut."""


def told_apart(raters: Sequence[Rater], folders: Sequence[str]) -> list[Rater]:
    """Raters of the same name with their folder's name behind it: one model judges with two prompts, say."""
    names = [rater.name for rater in raters]
    return [
        replace(rater, name=f"{rater.name} ({folder})") if names.count(rater.name) > 1 else rater
        for rater, folder in zip(raters, folders, strict=True)
    ]


def writable(text: str) -> str:
    """Half a surrogate pair, which JSON can spell and no file can hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode()


def shown_key(key: TurnKey) -> str:
    """`babyai/open/003 #1 turn 7`, as messages name a turn."""
    task_id, sample, turn = key
    return f"{task_id} #{sample} turn {turn}"
