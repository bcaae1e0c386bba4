"""Labels as CSV, for a spreadsheet or another tool: out with what a person has to see, in with what they decided."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_text
from evalharness.base.text import no_formula, printable
from evalharness.judge.draw import DrawnTurn
from evalharness.judge.labels import checked
from evalharness.judge.verdict import TurnKey, Verdict

_DECIDED = ("task_id", "sample", "turn", "label", "kind", "note")
"""Columns that are read back; the others are for whoever looks."""
_CONTEXT = ("goal", "before", "thought", "action", "observation")
_LONGEST = 100_000_000
_LONGEST_CELL = 30_000
"""Spreadsheets hold 32,767 characters."""


def guarded(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe before what begins like one. One that stands there
    already gets another, so that `unguarded` gives the text back."""
    return f"'{text}" if text.startswith("'") else no_formula(text)


def unguarded(cell: str) -> str:
    return cell.removeprefix("'")


def labels_csv(turns: Iterable[DrawnTurn], labels: Mapping[TurnKey, Verdict]) -> str:
    """All drawn turns, decided or not, in the order of the draw."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*_DECIDED, *_CONTEXT])
    for drawn in turns:
        episode, turn = drawn.episode, drawn.episode.turns[drawn.number - 1]
        before = (
            episode.turns[drawn.number - 2].observation if drawn.number > 1 else episode.first_observation
        )
        label = labels.get(drawn.key)
        said = [label.word, label.kind or "", label.note] if label else ["", "", ""]
        action = turn.reply if turn.action is None else turn.action
        shown = [printable(text)[:_LONGEST_CELL] for text in (episode.goal, before, turn.thought, action)]
        shown.append(printable(turn.observation)[:_LONGEST_CELL])
        cells = [drawn.key[0], str(drawn.key[1]), str(drawn.key[2]), *said, *shown]
        writer.writerow([guarded(cell) for cell in cells])
    return buffer.getvalue()


def read_labels_csv(path: Path) -> dict[TurnKey, Verdict]:
    """The decided turns of a CSV file. Raises UserError naming the line that is wrong."""
    try:
        if path.stat().st_size > _LONGEST:
            raise UserError(f"{path} is larger than any table of labels")
        text = read_text(path, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in _DECIDED[:4] if name not in (reader.fieldnames or ())]
    if missing:
        raise UserError(f"{path} has no column {missing[0]!r}; it needs {', '.join(_DECIDED[:4])}")
    found: dict[TurnKey, Verdict] = {}
    try:
        for row in reader:
            label = unguarded((row["label"] or "").strip()).casefold()
            if not label:
                continue
            key = _key(row)
            if label not in ("right", "wrong"):
                raise ValueError(f"the label {label[:40]!r} is neither right nor wrong")
            if key in found:
                raise ValueError("this turn stands there twice")
            kind = unguarded(row.get("kind") or "").strip().casefold() or None
            found[key] = checked(label == "wrong", kind, unguarded(row.get("note") or ""))
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}") from None
    return found


def _key(row: Mapping[str, str | None]) -> TurnKey:
    try:
        return unguarded(row["task_id"] or ""), int(row["sample"] or ""), int(row["turn"] or "")
    except ValueError:
        raise ValueError("sample and turn are whole numbers") from None
