"""Write the summary of a folder of scripts or trajectories, and the training data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.records.store import SUMMARY, write_atomically
from evalharness.records.stored import SCHEMA
from evalharness.training.datasets.conversation import Conversation, read_manifest, write_data
from evalharness.training.synthesis.dialogue import convert_trajectory
from evalharness.training.synthesis.script import KeysError, Script, read_script
from evalharness.training.synthesis.signals import Tally
from evalharness.training.synthesis.synthesis_store import (
    DATA,
    PASSED,
    list_finished,
    read_finished,
    read_synthesis_manifest,
)
from evalharness.training.synthesis.trajectory import Turn, read_turn


def read_stored_script(folder: Path, record: Mapping[str, Any]) -> Script:
    """Return the script of a stored record. Raises UserError if the script was edited and is no longer valid."""
    try:
        return read_script(record["script"])
    except (KeysError, KeyError) as error:
        raise UserError(f"{folder}: the world script of {record['key']} is damaged: {error}") from None


def read_stored_turns(folder: Path, record: Mapping[str, Any]) -> list[Turn]:
    """Return the turns of a stored record; empty in a folder of scripts."""
    try:
        return [read_turn(value, place) for place, value in enumerate(record.get("turns", []))]
    except (KeysError, TypeError) as error:
        raise UserError(f"{folder}: the trajectory of {record['key']} is damaged: {error}") from None


def count_finished(folder: Path) -> Tally:
    counted = Tally()
    for record in read_finished(folder):
        counted.add(record)
    return counted


def summarize(folder: Path) -> dict[str, Any]:
    """Return the summary of the folder's present content, even if not all personas are finished."""
    manifest = read_synthesis_manifest(folder)
    counted = count_finished(folder)
    last = manifest["sessions"][-1]
    requested = max(start["wanted"] for start in manifest["sessions"])
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": manifest["identity"]["kind"],
        "model": manifest["model_name"],
        "wanted": max(requested, counted.finished),
        "left": max(requested - counted.finished, 0),
        **counted.to_json(),
        "wall_s": round(sum(start.get("wall_s", 0.0) for start in manifest["sessions"]), 1),
        "structured_output": last.get("structured_output"),
    }
    if (data := read_manifest(folder / DATA)) is not None:
        summary["data"] = data["counts"]
    return summary


def write_outcome(folder: Path) -> dict[str, Any]:
    """Write `summary.json` and, for trajectories, the training data. Return the summary."""
    manifest = read_synthesis_manifest(folder)
    if manifest["identity"]["kind"] == "trajectories":
        made = {"command": "refine trajectories", "digest": manifest["digest"], **manifest["identity"]}
        write_data(folder / DATA, _conversations(folder), made)
    summary = summarize(folder)
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary


def _conversations(folder: Path) -> Iterator[Conversation]:
    for line in list_finished(folder / PASSED):
        record = line.read()
        yield convert_trajectory(
            record, read_stored_turns(folder, record), read_stored_script(folder, record)
        )
