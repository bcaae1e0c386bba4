"""Write a run in the format of another tool; none of them has to be installed.

  atif         Harbor's agent trajectory interchange format: a folder with a JSON document for each episode
  openai-chat  JSON lines of chat messages, RUN.jsonl, as fine-tuning takes them
  csv          episodes.csv and turns.csv; text that looks like a formula gets an apostrophe
  parquet      episodes.parquet and turns.parquet

To an experiment tracker (pip install 'evalharness[wandb]', or mlflow, trackio; its own variables say where the numbers
go: WANDB_MODE=offline, MLFLOW_TRACKING_URI, ...):

  wandb, mlflow, trackio  the scores and the configuration
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, system_errors
from evalharness.cli.output import say
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.records.manifest import Manifest

HELP = "write a run in the format of another tool or tracker"
_SUFFIX = {
    "atif": "-atif",
    "openai-chat": ".jsonl",
    "csv": "-csv",
    "parquet": "-parquet",
}
"""Format -> how the name of its file or folder ends."""
_TRACKERS = ("mlflow", "trackio", "wandb")
_OF_EPISODES = ("atif", "openai-chat")
"""Formats that `--successful` can leave episodes out of."""


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folder RUN", "run folder")
    argument(parser, "--format", "see above", required=True, choices=(*_SUFFIX, *_TRACKERS))
    argument(parser, "-o --output PATH", "file or folder to write (default: named after the run)", type=Path)
    argument(parser, "--successful", f"only episodes that solved their task ({', '.join(_OF_EPISODES)})")
    argument(parser, "--project NAME", "the project or experiment of the tracker", default="evalharness")


def run(args: argparse.Namespace) -> int:
    from evalharness.records.store import read_manifest

    manifest = read_manifest(args.folder)
    if args.format in _TRACKERS:
        from evalharness.results.exports.trackers import track
        from evalharness.results.summary import summarize

        count = track(args.format, args.project, manifest, summarize(args.folder))
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
        written = _write(args, target, manifest)
    say(f"wrote {target} ({written})")
    return 0


def _write(args: argparse.Namespace, target: Path, manifest: Manifest) -> str:
    import json

    from evalharness.results.exports import (
        atif,
        openai_chat,
        tables,
    )
    from evalharness.results.exports.conversation import Protocol
    from evalharness.results.tables import sorted_episodes

    chosen = (e for e in sorted_episodes(args.folder) if e.success or not args.successful)
    match args.format:
        case "atif":
            count = 0
            for episode in chosen:
                document = json.dumps(atif.trajectory(episode, manifest), indent=1)
                (target / atif.file_name(episode)).write_text(document + "\n", encoding="utf-8")
                count += 1
            return _episodes(count)
        case "openai-chat":
            count = 0
            with target.open("w", encoding="utf-8") as file:
                for episode in chosen:
                    file.write(openai_chat.line(episode, Protocol.of(manifest)))
                    count += 1
            return _episodes(count)
        case _:
            return ", ".join(path.name for path in tables.write(args.folder, target, args.format))


def _episodes(count: int) -> str:
    return f"{count} episode" if count == 1 else f"{count} episodes"
