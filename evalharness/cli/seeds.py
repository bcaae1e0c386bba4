"""`evalharness run --seeds`: the same run under several seeds, as one study."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.cli.common import write_json
from evalharness.cli.studies import end_study, play_study

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.runs.study import Runs

KIND = "seeds"
_MOST = 1000


def add_seeds_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--seeds",
        metavar="LIST",
        help="several seeds, 0,1,2 or 0-4: one run of each, in one study folder on one model server, then their mean "
        "and spread; further seeds extend the study",
    )


def read_seeds(text: str) -> list[int]:
    """`0,1,2`, `0-4`, `0-2,7`; each once, in order. Raises UserError."""
    from evalharness.base.errors import UserError

    found: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise UserError(
                f"--seeds {text}: {part.strip()!r} is no seed; give a list or range: 0,1,2 or 0-4"
            )
        first, last = int(low), int(high or low)
        if last - first >= _MOST:
            raise UserError(f"--seeds {text}: more than {_MOST} seeds")
        if last < first:
            raise UserError(f"--seeds {text}: {part.strip()} ends before it begins; write {last}-{first}")
        found |= set(range(first, last + 1))
    if len(found) < 2:
        raise UserError(f"--seeds {text}: a study needs two seeds; for one give --seed {text}")
    return sorted(found)


def run_seeds(args: argparse.Namespace) -> int:
    from evalharness.base.terminal import make_console
    from evalharness.results.report.seeds import print_seed_study
    from evalharness.results.scored_run import load_scored_run
    from evalharness.results.seeds import seed_study
    from evalharness.runs.study import study_folder

    seeds = read_seeds(args.seeds)
    runs = _runs(args, seeds)
    folder = study_folder(next(iter(runs.values())).changed(seed=0), KIND)
    out = make_console(stderr=args.json == "-")
    if args.dry_run:
        return _dry_run(out, folder, {n: run.changed(output=folder / n) for n, run in runs.items()}, args)
    played = play_study(KIND, folder, runs, args)
    if not played.stopped:
        study = seed_study({seed: load_scored_run(folder / f"seed-{seed}") for seed in seeds})
        print_seed_study(out, study)
        write_json(args.json, study.to_json())
    return end_study(out, folder, played)


def _dry_run(out: Console, folder: Path, runs: Runs, args: argparse.Namespace) -> int:
    """The first run's plan whole, and of the others where they go and what they have left."""
    from evalharness.base.terminal import say
    from evalharness.cli.common import data_folder, require_writable, titles
    from evalharness.runs.dry_run import dry_run
    from evalharness.runs.dry_run_table import folder_line, print_plan

    require_writable("--json", args.json)
    plans = {
        name: dry_run(config, data=data_folder(args), on_status=lambda text: say(f"evalharness: {text}"))
        for name, config in runs.items()
    }
    first, *others = plans.values()
    print_plan(out, first, titles())
    out.print(f"\nthat was {next(iter(plans))}, the first of {len(plans)} runs in {folder}; the others:",
        highlight=False, soft_wrap=True)  # fmt: skip
    for plan in others:
        out.print(folder_line(plan), highlight=False, soft_wrap=True)
    write_json(
        args.json, {"folder": str(folder), "runs": {name: plan.to_json() for name, plan in plans.items()}}
    )
    return 2 if any(plan.refused for plan in plans.values()) else 0


def _runs(args: argparse.Namespace, seeds: Sequence[int]) -> Runs:
    from evalharness.base.errors import UserError
    from evalharness.base.terminal import say
    from evalharness.cli.options import config_of

    if args.seed is not None:
        raise UserError(f"--seed {args.seed} and --seeds {args.seeds}: give one of the two")
    config = config_of(args)
    if config.policy.temperature == 0 and (config.policy.model == "oracle" or not config.policy.is_scripted):
        say(
            "evalharness: at temperature 0 the runs of all seeds are nearly identical; for different runs give "
            "--temperature 1"
        )
    return {f"seed-{seed}": config.changed(seed=seed) for seed in seeds}
