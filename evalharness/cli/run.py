"""Evaluate a model: play every task, score it, and store all results in a run folder. Run the same command again to
continue an interrupted run; finished episodes are never played again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.cli.common import data_folder, describe_continuation, report_kept_episodes, titles
from evalharness.cli.output import note, require_writable, results_console, write_json
from evalharness.cli.parser import CommandParser, whole_number
from evalharness.cli.studies import add_dry_run_option, run_study

if TYPE_CHECKING:
    from evalharness.config import RunConfig
    from evalharness.runs.evaluation import RunOutcome
    from evalharness.runs.study import Runs


HELP = "evaluate a model"


_USUAL = "--model --tasks --suite --limit --draw --agent --perturb --max-tokens --output --dry-run"
_EXAMPLES = """\
  evalharness run --model demo --suite open --draw 8
  evalharness run --model ckpt/ --tasks all
  evalharness run --model http://localhost:8000/v1 --tasks babyai,pddl
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options, run_options

    add_run_options(parser)
    add_dry_run_option(parser)
    accept_seed_list(run_options(parser)["seed"])
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    if isinstance(args.seed, str):
        return run_seeds(args)
    from evalharness.cli.options import config_of
    from evalharness.config import HUMAN
    from evalharness.runs import evaluation
    from evalharness.runs.live import watch

    config = config_of(args)
    require_writable("--json", args.json)
    if args.dry_run:
        from evalharness.runs.dry_run import dry_run, print_estimate

        estimate = dry_run(config, data=data_folder(args), on_status=note)
        print_estimate(results_console(args), estimate, titles())
        write_json(args.json, estimate.to_json())
        return 2 if estimate.refused else 0
    if config.policy.model.startswith(HUMAN):
        return _play_by_hand(args, config)
    with report_kept_episodes(args) as folders:
        outcome = evaluation.evaluate(config, data=data_folder(args), watch=watch, on_folder=folders.append)
    _print_outcome(args, outcome)
    if outcome.stopped:
        note(f"the run stopped early: {outcome.stopped}")
        note(f"finished episodes are kept{describe_continuation(outcome.stopped)}")
    return outcome.exit_status


def _play_by_hand(args: argparse.Namespace, config: RunConfig) -> int:
    """Let a person play. Return 0 if the person leaves, because the same command continues the run."""
    from evalharness.cli.person import make_person
    from evalharness.runs import evaluation

    person = make_person(config.policy.model)
    outcome = evaluation.evaluate(
        config.with_options(concurrency=1),
        data=data_folder(args),
        watch=person.watch,
        person=person,
    )
    _print_outcome(args, outcome)
    return 0 if outcome.stopped in (None, "you left") else outcome.exit_status


def _print_outcome(args: argparse.Namespace, outcome: RunOutcome) -> None:
    from evalharness.results.terminal.table import print_summary

    out = results_console(args)
    # Leave out the reason of a stop: `run` prints it at the end.
    print_summary(out, outcome.summary.model_copy(update={"stopped": None}), titles())
    if outcome.nothing_to_play:
        out.print(outcome.nothing_to_play, soft_wrap=True)
    out.print(f"run folder: {outcome.folder}", soft_wrap=True)
    write_json(args.json, outcome.summary.to_json())


KIND = "seeds"


def accept_seed_list(seed: argparse.Action) -> None:
    """Let `--seed` accept a single number or a list of seeds; a list is not parsed here."""
    seed.type = lambda text: whole_number(text) if text.lstrip("-").isdecimal() else text
    seed.metavar = "N|LIST"
    seed.help = (
        "seed of sampling and of the random policy (seed of tasks: --suite-seed); several seeds (0,1,2 or 0-4) make a"
        " study with one run for each seed; more seeds extend the study (default: 0)"
    )


def read_seeds(text: str) -> list[int]:
    """Parse a list of at least two seeds. Raises UserError."""
    from evalharness.suites.selection import parse_seeds

    if len(seeds := parse_seeds("--seed", text)) < 2:
        raise UserError(f"--seed {text}: a study needs at least two seeds")
    return seeds


def run_seeds(args: argparse.Namespace) -> int:
    from evalharness.runs.study import study_folder

    seeds, args.seed = read_seeds(args.seed), None
    runs = _runs(args, seeds)
    folder = study_folder(next(iter(runs.values())).with_options(seed=0), KIND)
    return run_study(KIND, folder, runs, args)


def _runs(args: argparse.Namespace, seeds: Sequence[int]) -> Runs:
    from evalharness.cli.options import config_of

    config = config_of(args)
    if config.policy.temperature == 0 and (config.policy.model == "oracle" or not config.policy.is_scripted):
        note(
            "at temperature 0 the runs of all seeds are nearly identical; for different runs give "
            "--temperature 1"
        )
    return {f"seed-{seed}": config.with_options(seed=seed) for seed in seeds}
