"""`evalharness bon`: Best-of-N, as one study."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import add_csv_option, write_csv, write_json
from evalharness.cli.parser import CommandParser
from evalharness.cli.studies import add_dry_run_option, dry_run_study, end_study, play_study

if TYPE_CHECKING:
    from evalharness.runs.study import Runs

HELP = "best of N samples beside greedy"
DESCRIPTION = """\
Best-of-N: one greedy attempt and N samples at temperature 1 of every task. Shows greedy, best of N, pass@k, pass^k,
and how different the samples are. The same command continues; a larger -n extends. docs/best-of-n.md
"""
_GREEDY, _SAMPLES = "greedy", "samples"


_USUAL = "--model --tasks --suite --samples --greedy --limit --draw --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness bon --model ckpt/ --tasks all
  evalharness bon --model ckpt/ --tasks babyai -n 4
  evalharness bon --model ckpt/ --greedy RUN
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options

    study = parser.add_argument_group("the study")
    study.add_argument(
        "-n", "--samples", type=int, default=10, metavar="N", help="samples of each task (default: 10)"
    )
    study.add_argument("--temperature", type=float, metavar="T", help="of the samples (default: 1)")
    study.add_argument(
        "--greedy",
        type=Path,
        metavar="RUN",
        help="a greedy run of the same model (default: one is played here)",
    )
    study.add_argument(
        "--tasks-csv", metavar="FILE", help="also write a row for each task: best progress, any success, ..."
    )
    add_dry_run_option(study)
    add_csv_option(study, "the table of greedy, BoN and delta")  # type: ignore[arg-type]
    add_run_options(parser, without=("samples", "temperature"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from evalharness.base.terminal import make_console
    from evalharness.envs import specs
    from evalharness.protocol.prompt import load_prompt
    from evalharness.results.best_of_n import best_of_n, require_greedy
    from evalharness.results.paper.sampled import print_best_of_n
    from evalharness.results.scored_run import load_scored_run
    from evalharness.runs.evaluation import prepare_or_stored
    from evalharness.runs.study import BEST_OF_N, study_folder

    runs = _runs(args)
    folder = study_folder(runs[_SAMPLES], BEST_OF_N)
    greedy = load_scored_run(args.greedy) if args.greedy else None
    if greedy is not None:  # before hours of playing, not after them
        samples, installed = runs[_SAMPLES], specs()
        there = samples.changed(output=folder / _SAMPLES)
        model = prepare_or_stored(there, installed, lambda text: None).identity
        prompts = {
            family: load_prompt(installed[family], samples.agent.prompts, samples.adaptation).sha256
            for family in greedy.manifest.counts
            if family in installed
        }
        require_greedy(greedy, samples.identity(), model, prompts)
    out = make_console(stderr="-" in (args.json, args.csv, args.tasks_csv))
    elsewhere = {_GREEDY: args.greedy.absolute()} if args.greedy else None
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    played = play_study(BEST_OF_N, folder, runs, args, elsewhere=elsewhere)
    if not played.stopped:
        greedy = greedy or load_scored_run(folder / _GREEDY)
        study = best_of_n(greedy, load_scored_run(folder / _SAMPLES))
        print_best_of_n(out, study)
        write_csv(args.csv, study.rows())
        if args.tasks_csv:
            write_csv(args.tasks_csv, study.task_rows())
        write_json(args.json, study.to_json())
    return end_study(out, folder, played)


def _runs(args: argparse.Namespace) -> Runs:
    from evalharness.base.errors import UserError
    from evalharness.cli.options import config_of

    config = config_of(args, temperature=1.0 if args.temperature is None else args.temperature)
    if config.selection.samples < 2:
        raise UserError(f"-n {config.selection.samples}: a best of N needs two samples at least")
    if config.policy.temperature == 0:
        raise UserError("--temperature 0 makes all samples alike; leave it out, or give one above 0")
    greedy = config.changed(temperature=0.0, top_p=1.0, samples=1)
    return {_SAMPLES: config} if args.greedy else {_GREEDY: greedy, _SAMPLES: config}
