"""Evaluate every checkpoint-N, step_N or epoch_N of a folder: scores with intervals, paired tests against the first
checkpoint. Run the same command again to continue, or to add new checkpoints.
docs/checkpoints.md
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import add_csv_option
from evalharness.cli.output import note, results_console
from evalharness.cli.parser import CommandParser, argument, number
from evalharness.cli.studies import add_dry_run_option, dry_run_study, end_study, play_study, show_training

if TYPE_CHECKING:
    from evalharness.runs.checkpoints import FoundCheckpoints

HELP = "evaluate all checkpoints of a training run"


_USUAL = "--tasks --suite --limit --draw --subset --watch --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness checkpoints tuned/ --suite open
  evalharness checkpoints tuned/ --suite open --subset 80
  evalharness checkpoints tuned/ --suite open --subset 80 --watch
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options

    study = parser.add_argument_group("the study")
    argument(study, "folder DIR", "folder with the checkpoints", type=str)
    argument(study, "--base MODEL", "base model of the adapters (default: as in their adapter_config.json)")
    argument(study, "--only PATTERN", "only checkpoints with these names: 'step_*'")
    argument(study, "--merge", "merge each adapter (default: one vLLM serves all adapters of a base model)")
    argument(study, "--by {progress,success}", "measure that selects the best checkpoint", default="progress")
    argument(
        study,
        "--select-on open:SEED",
        "also play this suite, to choose the best checkpoint by its score there; report its score on --suite",
    )
    study.add_argument(
        "--watch",
        nargs="?",
        type=number,
        const=60.0,
        metavar="MINUTES",
        help="wait for new checkpoints; end when none has appeared for this many minutes (default: 60)",
    )
    argument(
        study,
        "--x KEY=FILE",
        "draw scores by the values in FILE (CSV or JSON) for each checkpoint, instead of the step",
    )
    add_dry_run_option(study)
    add_csv_option(study, "a row for each checkpoint, family and measure")
    add_run_options(parser, without=("model", "lora", "lora_serve"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from evalharness.cli.options import config_of
    from evalharness.records.files import STUDY
    from evalharness.records.store import lock_folder
    from evalharness.runs.checkpoints import find_checkpoints, runs_of, select_seed, wait_for_new
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_file import CHECKPOINTS
    from evalharness.runs.study_results import training_result

    if args.watch is not None and args.watch < 0:
        raise UserError(f"--watch {args.watch:g}: give a number of minutes, at least 0")
    source = Path(args.folder)
    config = config_of(args, model=str(source))
    if config.policy.is_endpoint or config.policy.is_scripted:
        raise UserError(f"{args.folder} is not a folder of checkpoints")
    seed = select_seed(args.select_on, config.selection)
    folder = study_folder(config, CHECKPOINTS)
    out = results_console(args)
    known: set[str] = set()
    began, status = time.monotonic(), 0
    watches = args.watch is not None

    def find() -> FoundCheckpoints:
        return find_checkpoints(source, args.only, none_yet=watches)

    with nullcontext() if args.dry_run else lock_folder(folder, STUDY):
        while True:
            in_folder = find()
            for name, problem in in_folder.incomplete.items():
                note(f"{name} is not played: {problem}")
            new = [checkpoint for checkpoint in in_folder.checkpoints if checkpoint.name not in known]
            if not new and (not watches or args.dry_run):
                raise UserError(f"{args.folder} contains no complete checkpoint")
            runs = runs_of(new, config, base=args.base, merge=args.merge, select_seed=seed)
            if args.dry_run:
                return dry_run_study(out, folder, runs, args)
            outcome = play_study(CHECKPOINTS, folder, runs, args, began=began)
            status = max(status, outcome.exit_status)
            known |= {checkpoint.name for checkpoint in new}
            training = training_result(folder, args.by, choose_elsewhere=bool(args.select_on))
            show_training(args, folder / CHECKPOINTS, training)
            if outcome.stopped or not watches:
                return max(status, end_study(out, folder, outcome))
            note(f"waiting for new checkpoints in {source}; Ctrl-C ends the watch")
            try:
                if not wait_for_new(lambda: {c.name for c in find().checkpoints}, known, args.watch):
                    return max(status, end_study(out, folder, outcome))
            except KeyboardInterrupt:
                return max(status, end_study(out, folder, outcome))
