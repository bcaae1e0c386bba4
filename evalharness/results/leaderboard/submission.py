"""Runs as a submission: the records that a replay needs, without what only concerns the submitter's machine."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evalharness.base.errors import UserError
from evalharness.base.paths import folder_name
from evalharness.base.reading import sha256_of
from evalharness.base.version import __version__
from evalharness.config import is_scripted
from evalharness.records.episode import Episode, FurtherCall, Trial, Turn
from evalharness.records.identity import digest
from evalharness.records.manifest import Identity, Manifest, Start
from evalharness.records.store import EPISODES, ERRORS, MANIFEST, SUMMARY, read_failures, read_manifest
from evalharness.records.stored import why
from evalharness.records.submission import (
    FILES,
    METADATA,
    RUNS,
    Metadata,
    SubmittedRun,
    write_metadata,
)
from evalharness.results.summary import summarize
from evalharness.results.tables import sorted_episodes

_OF_A_START = ("started", "evalharness", "git", "python", "platform", "packages", "label")
"""What a reader may know of each time the run was played; not the paths, hosts and servers of the submitter."""


def write(
    folder: Path,
    runs: Sequence[Path],
    name: str | None,
    *,
    text: bool,
    **said: Any,
) -> Metadata:
    """Write the submission; `name`: None as the runs call their model; `text`: with what the model wrote, not its
    actions alone; `said`: further fields of `Metadata`.

    Raises UserError where `folder` holds something else, or what is said of it does not do.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / METADATA).is_file():
        raise UserError(f"{folder} is not empty and no submission; choose a new folder with -o DIR")
    manifests = [read_manifest(run) for run in runs]
    names = _names(runs)
    try:
        metadata = Metadata(
            name=name or manifests[0].model_name,
            date=time.strftime("%Y-%m-%d"),
            model_text=text,
            evalharness=__version__,
            **said,
            runs=[
                SubmittedRun(
                    folder=f"{RUNS}/{own}",
                    name=name or manifest.model_name,
                    suite=manifest.suite,
                    perturbation=manifest.config.perturb,
                    files=_write_run(run, folder / RUNS / own, manifest, text=text),
                )
                for run, own, manifest in zip(runs, names, manifests, strict=True)
            ],
        )
    except ValidationError as error:
        raise UserError(f"cannot submit that: {why(error)}") from None
    write_metadata(folder, metadata)
    return metadata


def _names(runs: Sequence[Path]) -> list[str]:
    """A folder's name for each run, none twice."""
    names: list[str] = []
    for run in runs:
        name = own = folder_name(run.resolve().name, "run")
        number = 2
        while name in names:
            name, number = f"{own}-{number}", number + 1
        names.append(name)
    return names


def _write_run(run: Path, target: Path, manifest: Manifest, *, text: bool) -> dict[str, str]:
    """Returns the SHA-256 of each file."""
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (target / name).unlink(missing_ok=True)
    starts = [_start(start) for start in manifest.sessions]
    identity = _identity(manifest.identity)
    reduced = manifest.to_json() | {
        "sessions": starts, "model_text": text, "identity": identity, "digest": digest(identity)
    }  # fmt: skip
    reduced.pop("disjoint", None)  # earlier versions named the trainer's server there
    (target / MANIFEST).write_text(json.dumps(reduced, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    with (target / EPISODES).open("w", encoding="ascii") as file:
        for episode in sorted_episodes(run):
            file.write(json.dumps(_episode(episode, text=text).to_json(), separators=(",", ":")) + "\n")
    failures = [line for line in read_failures(run) if line.get("final")]
    if failures:
        with (target / ERRORS).open("w", encoding="ascii") as file:
            for line in failures:
                kept = {key: line[key] for key in ("task_id", "sample", "kind", "final") if key in line}
                file.write(json.dumps(kept) + "\n")
    summary = summarize(target).to_json() | {"run": target.name}
    (target / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return {name: sha256_of(target / name) for name in FILES if (target / name).exists()}


def _start(start: Start) -> dict[str, Any]:
    kept = {key: value for key, value in start.to_json().items() if key in _OF_A_START}
    ways = [{"tells_stop": way.get("tells_stop", True)} for way in start.requests]
    return kept | ({"policy": {"requests": ways}} if ways else {})


def _identity(identity: Identity) -> dict[str, Any]:
    """Without folders, addresses and server arguments, but for the context limit, which tables name."""
    whole = identity.to_json()
    config, model = whole["config"], whole["model"]
    served = model.get("served", {})
    named = str(config.get("model"))
    if named.startswith("replay:"):
        config["model"] = model["name"] = f"replay:{Path(named).name}"
    elif not is_scripted(named):
        for part, key in ((config, "model"), (config, "lora"), (served, "root"), (served, "parent")):
            if part.get(key):
                part[key] = Path(part[key]).name
    if args := config.get("vllm_args"):
        config["vllm_args"] = " ".join(re.findall(r"--max-model-len[ =]\S+", args))
    model.pop("url", None)
    return whole


def _episode(episode: Episode, *, text: bool) -> Episode:
    """Without failed requests, whose errors can name hosts; without `text`, only what was done is left of a reply."""
    of_call: dict[str, Any] = {"failed_tries": ()}
    if not text:
        of_call |= {"reply": "", "reasoning": "", "calls": ()}
    of_turn = of_call if text else of_call | {"thought": ""}

    def further(part: Turn | Trial | Episode) -> tuple[FurtherCall, ...]:
        return tuple(replace(call, **of_call) for call in part.further)

    def parts(played: Trial | Episode) -> dict[str, Any]:
        turns = tuple(replace(turn, further=further(turn), **of_turn) for turn in played.turns)
        return {"turns": turns, "further": further(played)}

    earlier = tuple(replace(trial, **parts(trial)) for trial in episode.earlier)
    return replace(episode, earlier=earlier, **parts(episode))
