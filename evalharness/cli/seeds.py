"""`evalharness run --seeds`: the same run under several seeds, as one study."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evalharness.cli.common import write_json
from evalharness.cli.studies import end_study, play_study

if TYPE_CHECKING:
    from evalharness.config import RunConfig

KIND = "seeds"
_MOST = 1000


def add_seeds_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--seeds",
        metavar="LIST",
        help="instead of --seed several, 0,1,2 or 0-4: a run of each in one study folder on one model server, then "
        "their mean and spread; further seeds extend the study",
    )


def read_seeds(text: str) -> list[int]:
    """`0,1,2`, `0-4`, `0-2,7`; each once, in order. Raises UserError."""
    from evalharness.errors import UserError

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
    from evalharness.analysis.scored_run import load_scored_run
    from evalharness.analysis.seeds import seed_study
    from evalharness.engine.study import study_folder
    from evalharness.report.seeds import print_seed_study
    from evalharness.report.terminal import make_console

    runs = _runs(args)
    folder = study_folder(next(iter(runs.values())).model_copy(update={"seed": 0}), KIND)
    out = make_console(stderr=args.json == "-")
    played = play_study(KIND, folder, {f"seed-{seed}": config for seed, config in runs.items()}, args)
    if not played.stopped:
        study = seed_study({seed: load_scored_run(folder / f"seed-{seed}") for seed in runs})
        print_seed_study(out, study)
        write_json(args.json, study.to_json())
    return end_study(out, folder, played)


def _runs(args: argparse.Namespace) -> dict[int, RunConfig]:
    from evalharness.cli.options import config_of
    from evalharness.errors import UserError
    from evalharness.report.terminal import say

    if args.seed is not None:
        raise UserError(f"--seed {args.seed} and --seeds {args.seeds}: give one of the two")
    seeds = read_seeds(args.seeds)
    config = config_of(args)
    if config.temperature == 0 and (config.model == "oracle" or not config.is_scripted):
        say(
            "evalharness: at temperature 0 all seeds play alike, but for what the server itself does not repeat; for "
            "different runs give --temperature 1"
        )
    return {seed: config.model_copy(update={"seed": seed}) for seed in seeds}
