"""What a folder of scripts or trajectories comes to: its summary, and of trajectories the training data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalharness.engine.asking import TokenPrices
from evalharness.errors import UserError
from evalharness.records.store import SUMMARY, write_atomically
from evalharness.refine.conversation import sample_of
from evalharness.refine.sample import Sample, read_manifest, write_samples
from evalharness.refine.script import KeysError, Script, read_script
from evalharness.refine.synthesis_store import (
    DATA,
    PASSED,
    REJECTED,
    finished_lines,
    read_records,
    read_synthesis_manifest,
)
from evalharness.refine.tally import Tally, tally
from evalharness.refine.trajectory import Turn, read_turn

SCHEMA = 1


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
    return tally(record for name in (PASSED, REJECTED) for record in read_records(folder / name))


def summarize(folder: Path, prices: TokenPrices | None = None) -> dict[str, Any]:
    """The summary as of now, also while the folder is being filled. `prices` replace those given when it was made."""
    manifest = read_synthesis_manifest(folder)
    counted = count_finished(folder)
    last = manifest["sessions"][-1]
    wanted = max(session["wanted"] for session in manifest["sessions"])
    summary: dict[str, Any] = {
        "schema": SCHEMA,
        "kind": manifest["identity"]["kind"],
        "model": manifest["model_name"],
        "wanted": max(wanted, counted.finished),
        "left": max(wanted - counted.finished, 0),
        **counted.to_json(prices or TokenPrices(*last["prices"])),
        "wall_s": round(sum(session.get("wall_s", 0.0) for session in manifest["sessions"]), 1),
        "structured_output": last.get("structured_output"),
    }
    if (data := read_manifest(folder / DATA)) is not None:
        summary["data"] = data["counts"]
    return summary


def write_outcome(folder: Path, prices: TokenPrices | None = None) -> dict[str, Any]:
    """`summary.json`, and of trajectories the training data. Returns the summary."""
    manifest = read_synthesis_manifest(folder)
    if manifest["identity"]["kind"] == "trajectories":
        made = {"command": "refine trajectories", "digest": manifest["digest"], **manifest["identity"]}
        write_samples(folder / DATA, _samples(folder), made)
    summary = summarize(folder, prices)
    write_atomically(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")
    return summary


def _samples(folder: Path) -> Iterator[Sample]:
    for line in finished_lines(folder / PASSED):
        record = line.read()
        yield sample_of(record, stored_turns(folder, record), stored_script(folder, record))
