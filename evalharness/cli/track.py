"""Send a run's scores and configuration to an experiment tracker. Needs one extra: pip install 'evalharness[wandb]' (or
mlflow, trackio). The tracker's own variables say where they go: WANDB_MODE=offline, MLFLOW_TRACKING_URI, ...
"""

from __future__ import annotations

import argparse

from evalharness.cli.output import say
from evalharness.cli.parser import argument

HELP = "scores to wandb, mlflow or trackio"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folder RUN", "run folder")
    argument(parser, "--to {mlflow,trackio,wandb}", "which tracker", required=True)
    argument(parser, "--project NAME", "project or experiment", default="evalharness")


def run(args: argparse.Namespace) -> int:
    from evalharness.records.store import read_manifest
    from evalharness.results.exports.trackers import track
    from evalharness.results.summary import summarize

    count = track(args.to, args.project, read_manifest(args.folder), summarize(args.folder))
    say(f"{args.to}: sent {count} numbers to {args.project}")
    return 0
