"""Write a run or a study in the format of another tool (it need not be installed).

  atif         Harbor's trajectory format: a folder for each run, and in it a
               JSON document for each episode
  openai-chat  JSON lines of chat messages for fine-tuning, RUN.jsonl
  csv          episodes.csv, turns.csv; a text like a formula gets an apostrophe
  parquet      episodes.parquet and turns.parquet

Or send the run to an experiment tracker (pip install 'evalharness[wandb]', or
mlflow, trackio). The tracker's own variables set the destination
(WANDB_MODE=offline, MLFLOW_TRACKING_URI, ...):

  wandb, mlflow, trackio  the scores and the configuration
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, system_errors
from evalharness.cli.output import say
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.records.manifest import Manifest

HELP = "write a run or study in the format of another tool or tracker"
_SUFFIX = {
    "atif": "-atif",
    "openai-chat": ".jsonl",
    "csv": "-csv",
    "parquet": "-parquet",
}
"""Format -> suffix of its file or folder."""
_TRACKERS = ("mlflow", "trackio", "wandb")
_OF_EPISODES = ("atif", "openai-chat")
"""Formats that contain whole episodes, so that `--successful` can omit some."""


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folder RUN", "run folder, or study")
    argument(parser, "--format", "see above", required=True, choices=(*_SUFFIX, *_TRACKERS))
    argument(parser, "-o --output PATH", "file or folder to write (default: named after the run)", type=Path)
    argument(parser, "--successful", f"only episodes that solved their task ({', '.join(_OF_EPISODES)})")
    argument(parser, "--project NAME", "project or experiment in the tracker", default="evalharness")


def run(args: argparse.Namespace) -> int:
    from evalharness.records.store import read_manifest
    from evalharness.runs.study_file import some_run_folders

    runs = some_run_folders([args.folder])
    manifests = {run: read_manifest(run) for run in runs}
    if args.format in _TRACKERS:
        from evalharness.results.exports.trackers import track
        from evalharness.results.summarize import summarize

        for folder, manifest in manifests.items():
            count = track(args.format, args.project, manifest, summarize(folder))
            say(f"{args.format}: sent {count} numbers to {args.project}")
        return 0
    if args.successful and args.format not in _OF_EPISODES:
        instead = ": use its column `success`" if args.format in ("csv", "parquet") else ""
        raise UserError(f"--successful has no meaning for {args.format}{instead}")
    suffix = _SUFFIX[args.format]
    target = args.output or Path(Path(os.path.realpath(args.folder)).name + suffix)
    with system_errors(f"cannot write {target}", "; choose another with -o PATH"):
        if "." not in suffix:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
        written = _write(args, target, manifests)
    say(f"wrote {target} ({written})")
    return 0


def _write(args: argparse.Namespace, target: Path, manifests: Mapping[Path, Manifest]) -> str:
    import json

    from evalharness.results.exports import (
        atif,
        openai_chat,
        tables,
    )
    from evalharness.results.exports.conversation import Protocol
    from evalharness.results.tables import read_sorted_episodes

    if args.format in tables.FORMATS:
        return ", ".join(path.name for path in tables.write(list(manifests), target, args.format))
    count = 0
    with contextlib.ExitStack() as stack:
        chats = None if args.format == "atif" else stack.enter_context(target.open("w", encoding="utf-8"))
        for run, manifest in manifests.items():
            folder = target if run == args.folder else target / run.name
            for episode in read_sorted_episodes(run):
                if args.successful and not episode.success:
                    continue
                count += 1
                if chats is not None:
                    chats.write(openai_chat.line(episode, Protocol.of(manifest)))
                    continue
                folder.mkdir(exist_ok=True)
                document = json.dumps(atif.trajectory(episode, manifest), indent=1)
                (folder / atif.file_name(episode)).write_text(document + "\n", encoding="utf-8")
    return "1 episode" if count == 1 else f"{count} episodes"
