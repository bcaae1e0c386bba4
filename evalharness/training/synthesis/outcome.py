"""What a folder of scripts or trajectories comes to: its summary, and of trajectories the training data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.records.store import SUMMARY, write_atomically
from evalharness.records.stored import SCHEMA
from evalharness.training.datasets.conversation import Conversation, read_manifest, write_data
from evalharness.training.synthesis.dialogue import conversation_of
from evalharness.training.synthesis.script import KeysError, Script, read_script
from evalharness.training.synthesis.signals import Tally
from evalharness.training.synthesis.synthesis_store import (
    DATA,
    PASSED,
    finished_lines,
    read_finished,
    read_synthesis_manifest,
)
from evalharness.training.synthesis.trajectory import Turn, read_turn


def stored_script(folder: Path, record: Mapping[str, Any]) -> Script:
    """The script of a finished line. Raises UserError where it was changed into something that is none."""
    try:
        return read_script(record["script"])
    except (KeysError, KeyError) as error:
        raise UserError(f"{folder}: the script of {record['key']} is damaged: {error}") from None


def stored_turns(folder: Path, record: Mapping[str, Any]) -> list[Turn]:
    """The turns of a finished line; none in a folder of scripts."""
    try:
        return [read_turn(value, place) for place, value in enumerate(record.get("turns", []))]
    except (KeysError, TypeError) as error:
        raise UserError(f"{folder}: the trajectory of {record['key']} is damaged: {error}") from None


def count_finished(folder: Path) -> Tally:
    """Over all finished personas; reads one line at a time."""
    counted = Tally()
    for record in read_finished(folder):
        counted.add(record)
    return counted


def summarize(folder: Path) -> dict[str, Any]:
    """The summary as of now, also while the folder is being filled."""
    manifest = read_synthesis_manifest(folder)
    counted = count_finished(folder)
    last = manifest["sessions"][-1]
    wanted = max(start["wanted"] for start in manifest["sessions"])
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": manifest["identity"]["kind"],
        "model": manifest["model_name"],
        "wanted": max(wanted, counted.finished),
        "left": max(wanted - counted.finished, 0),
        **counted.to_json(),
        "wall_s": round(sum(start.get("wall_s", 0.0) for start in manifest["sessions"]), 1),
        "structured_output": last.get("structured_output"),
    }
    if (data := read_manifest(folder / DATA)) is not None:
        summary["data"] = data["counts"]
    return summary


def write_outcome(folder: Path) -> dict[str, Any]:
    """`summary.json`, and of trajectories the training data. Returns the summary."""
    manifest = read_synthesis_manifest(folder)
    if manifest["identity"]["kind"] == "trajectories":
        made = {"command": "refine trajectories", "digest": manifest["digest"], **manifest["identity"]}
        write_data(folder / DATA, _conversations(folder), made)
    summary = summarize(folder)
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary


def _conversations(folder: Path) -> Iterator[Conversation]:
    for line in finished_lines(folder / PASSED):
        record = line.read()
        yield conversation_of(record, stored_turns(folder, record), stored_script(folder, record))
