"""Store a person's labels of a run in `RUN/labels/RATER/labels.jsonl`, one line for each decision.

Labels can also be made in a spreadsheet: export the turns as CSV, fill in the column `label`, and import the file.
"""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.base.reading import read_object, read_text
from evalharness.base.text import no_formula, printable
from evalharness.judge.draw import DrawnTurn, JudgedRun
from evalharness.judge.folder import choose_own_folder, draws_of, read_kind
from evalharness.judge.verdict import Rater, TurnKey, Verdict, check_verdict, verdict_of
from evalharness.records.answers import make_manifest
from evalharness.records.lines import read_lines
from evalharness.records.store import RecordFolder

FOLDER = "labels"
"""Name of the folder, inside the run's folder, that has a folder for each person."""
LABELS = "labels.jsonl"
KIND = "labels"
MAKE = "evalharness judge label RUN --rater NAME"


def label_folder(run: Path, rater: str) -> Path:
    """Return the folder of a person's labels. Raises UserError if the name is not valid for a folder."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,59}", rater):
        raise UserError(
            f"--rater {rater!r}: give a name of letters, digits, dots and dashes; it names a folder"
        )
    return choose_own_folder(run, FOLDER, rater)


class LabelFolder(RecordFolder):
    """A folder with one person's labels. The last line of a turn counts; without a verdict, it removes the label."""

    lines = (LABELS,)

    def __init__(self, run: JudgedRun, rater: str) -> None:
        super().__init__(label_folder(run.folder, rater))
        self.run = run
        self.rater = rater
        self.labels: dict[TurnKey, Verdict] = {}

    def open(self, drawn: Mapping[str, int | bool | None]) -> None:
        """Open the folder, or create it. The manifest records `drawn`, which says how the turns were sampled. Raises
        UserError if the folder has labels of another run."""
        identity = {"kind": KIND, "run_digest": self.run.digest, "rater": self.rater}
        manifest = make_manifest(identity, self.rater, drawn=dict(drawn))
        self.load_or_refuse(manifest)
        self.run.require_known(self.labels, str(self.folder))
        self.begin(manifest)

    def load(self) -> None:
        self.labels = _read(self.folder)

    def add(self, key: TurnKey, verdict: Verdict) -> None:
        """Store a label. Raises UserError if the run has no such turn, StoreError if the file cannot be written."""
        self.run.require_known({key: verdict}, "label")
        verdict = replace(verdict, turn_sha256=self.run.turns[key].sha256)
        task_id, sample, turn = key
        self.append_line(
            LABELS,
            {
                **{"task_id": task_id, "sample": sample, "turn": turn},
                **asdict(verdict),
                "time": time.time(),
            },
        )
        self.labels[key] = verdict
        if verdict.wrong is None:
            del self.labels[key]


def _read(folder: Path) -> dict[TurnKey, Verdict]:
    def label(raw: bytes) -> tuple[TurnKey, Verdict]:
        return verdict_of(read_object(raw))

    verdicts = dict(read_lines(folder / LABELS, "its turn is labelled anew", label))
    return {key: verdict for key, verdict in verdicts.items() if verdict.wrong is not None}


def read_labels(folder: Path) -> Rater:
    """Read a person's folder as a rater. Raises UserError."""
    manifest = read_kind(folder, KIND, MAKE)
    return Rater(
        str(manifest["identity"].get("rater", folder.name)),
        _read(folder),
        run_digest=manifest["identity"]["run_digest"],
        draws=draws_of(manifest),
    )


_DECIDED = ("task_id", "sample", "turn", "label", "kind", "note")
"""Columns that are imported. The other columns only show a person what to label."""
_SHA256 = "turn_sha256"
"""Optional column with the hash of the labelled turn, to detect labels of another run."""
_CONTEXT = ("goal", "before", "thought", "action", "observation")
_LARGEST = 100 << 20
"""Largest size of a CSV file in bytes."""
_LONGEST_CELL = 30_000
"""Largest number of characters in a cell; spreadsheets allow 32,767."""


def guard_cell(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would read as a formula, and before text that begins with an
    apostrophe. `unguard_cell` restores the text."""
    return f"'{text}" if text.startswith("'") else no_formula(text)


def unguard_cell(cell: str) -> str:
    return cell.removeprefix("'")


def labels_csv(turns: Iterable[DrawnTurn], labels: Mapping[TurnKey, Verdict]) -> str:
    """Return all sampled turns as CSV in the given order, labelled or not."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*_DECIDED, *_CONTEXT, _SHA256])
    for drawn in turns:
        before, (turn,) = drawn.since(0)
        label = labels.get(drawn.key)
        decision = [label.word, label.kind or "", label.note] if label else ["", "", ""]
        action = turn.reply if turn.action is None else turn.action
        context = (drawn.episode.goal, before, turn.thought, action, turn.observation)
        texts = [printable(text)[:_LONGEST_CELL] for text in context]
        cells = [drawn.key[0], str(drawn.key[1]), str(drawn.key[2]), *decision, *texts]
        writer.writerow([*map(guard_cell, cells), drawn.sha256])
    return buffer.getvalue()


def read_labels_csv(path: Path) -> dict[TurnKey, Verdict]:
    """Read the labelled turns of a CSV file. Raises UserError that names the wrong line."""
    try:
        text = read_text(path, "utf-8-sig", _LARGEST)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [name for name in _DECIDED[:4] if name not in (reader.fieldnames or ())]
    if missing:
        raise UserError(f"{path} has no column {missing[0]!r}; it needs {', '.join(_DECIDED[:4])}")
    labels: dict[TurnKey, Verdict] = {}
    try:
        for row in reader:
            label = unguard_cell((row["label"] or "").strip()).casefold()
            if not label:
                continue
            key = _key(row)
            if label not in ("right", "wrong"):
                raise ValueError(f"the label {label[:40]!r} is neither right nor wrong")
            if key in labels:
                raise ValueError("this turn occurs twice")
            kind = unguard_cell(row.get("kind") or "").strip().casefold() or None
            verdict = check_verdict(label == "wrong", kind, unguard_cell(row.get("note") or ""))
            labels[key] = replace(verdict, turn_sha256=row.get(_SHA256) or None)
    except (ValueError, csv.Error) as error:
        raise UserError(f"{path}, line {reader.line_num}: {error}") from None
    return labels


def _key(row: Mapping[str, str | None]) -> TurnKey:
    try:
        return unguard_cell(row["task_id"] or ""), int(row["sample"] or ""), int(row["turn"] or "")
    except ValueError:
        raise ValueError("sample and turn are whole numbers") from None
