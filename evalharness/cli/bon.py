"""Best-of-N: play one greedy attempt and N samples at temperature 1 of every task. Show the success of the greedy
attempt and of the best sample, pass@k, pass^k, and how much the samples differ. Run the same command again to continue;
a larger -n adds samples. docs/best-of-n.md"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import add_csv_option
from evalharness.cli.parser import CommandParser, argument
from evalharness.cli.studies import add_dry_run_option, run_study

if TYPE_CHECKING:
    from evalharness.runs.study import Runs

HELP = "compare the best of N samples with greedy decoding"


_USUAL = "--model --tasks --suite --samples --greedy --limit --draw --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness bon --model ckpt/ --tasks all
  evalharness bon --model ckpt/ --tasks babyai -n 4
  evalharness bon --model ckpt/ --greedy RUN
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options

    study = parser.add_argument_group("the study")
    argument(study, "-n --samples N", "samples of each task (default: 10)")
    argument(study, "--temperature T", "temperature of the samples (default: 1)")
    argument(study, "--greedy RUN", "an existing greedy run of the same model (default: play one)")
    argument(
        study, "--tasks-csv FILE", "also write a row for each task: best progress, any success, ...", type=str
    )
    add_dry_run_option(study)
    add_csv_option(study, "the success of greedy and best of N, and their difference,")
    add_run_options(parser, without=("samples", "temperature"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from evalharness.envs import specs
    from evalharness.protocol.prompt import load_prompt
    from evalharness.results.best_of_n import require_greedy
    from evalharness.results.scored_run import load_scored_run
    from evalharness.runs.resume import prepare_or_stored
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_file import BEST_OF_N, GREEDY, SAMPLES

    runs = _runs(args)
    folder = study_folder(runs[SAMPLES], BEST_OF_N)
    if args.greedy:  # check that the greedy run is comparable before playing samples for hours
        greedy, samples, installed = load_scored_run(args.greedy), runs[SAMPLES], specs()
        config = samples.with_options(output=folder / SAMPLES)
        model = prepare_or_stored(config, installed, lambda text: None).identity
        prompts = {
            family: load_prompt(installed[family], samples.agent.prompts, samples.adaptation).sha256
            for family in greedy.manifest.counts
            if family in installed
        }
        require_greedy(greedy, samples.identity(), model, prompts)
    elsewhere = {GREEDY: args.greedy.absolute()} if args.greedy else None
    return run_study(BEST_OF_N, folder, runs, args, elsewhere=elsewhere)


def _runs(args: argparse.Namespace) -> Runs:
    from evalharness.cli.options import config_of
    from evalharness.runs.study_file import GREEDY, SAMPLES

    config = config_of(args, usual={"samples": 10, "temperature": 1.0})
    if config.selection.samples < 2:
        raise UserError(f"-n {config.selection.samples}: Best-of-N needs at least two samples")
    if config.policy.temperature == 0:
        raise UserError(
            "--temperature 0 makes all samples equal; leave it out, or give a temperature above 0"
        )
    greedy = config.with_options(temperature=0.0, top_p=1.0, samples=1)
    return {SAMPLES: config} if args.greedy else {GREEDY: greedy, SAMPLES: config}
