"""`evalharness run --seed 0,1,2`: the same run under several seeds, as one study."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalharness.cli.common import write_json
from evalharness.cli.studies import dry_run_study, end_study, play_study

if TYPE_CHECKING:
    from evalharness.runs.study import Runs

KIND = "seeds"
_MOST = 1000


def take_several(seed: argparse.Action) -> None:
    """`--seed` of a parser that may be given a list, which stays a text."""
    seed.type = lambda text: int(text) if text.lstrip("-").isdecimal() else text
    seed.metavar = "N|LIST"
    seed.help = (
        "seed of sampling and of the random policy (of the tasks: --suite-seed); several, 0,1,2 or 0-4: a run of "
        "each as one study, with mean and spread; further seeds extend it (default: 0)"
    )


def read_seeds(text: str) -> list[int]:
    """`0,1,2`, `0-4`, `0-2,7`; each once, in order. Raises UserError."""
    from evalharness.base.errors import UserError

    found: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise UserError(f"--seed {text}: {part.strip()!r} is no seed; give a list or range: 0,1,2 or 0-4")
        first, last = int(low), int(high or low)
        if last - first >= _MOST:
            raise UserError(f"--seed {text}: more than {_MOST} seeds")
        if last < first:
            raise UserError(f"--seed {text}: {part.strip()} ends before it begins; write {last}-{first}")
        found |= set(range(first, last + 1))
    if len(found) < 2:
        raise UserError(f"--seed {text}: a study needs two seeds")
    return sorted(found)


def run_seeds(args: argparse.Namespace) -> int:
    from evalharness.base.terminal import make_console
    from evalharness.runs.study import study_folder
    from evalharness.runs.study_results import print_study

    seeds, args.seed = read_seeds(args.seed), None
    runs = _runs(args, seeds)
    folder = study_folder(next(iter(runs.values())).changed(seed=0), KIND)
    out = make_console(stderr=args.json == "-")
    if args.dry_run:
        return dry_run_study(out, folder, runs, args)
    played = play_study(KIND, folder, runs, args)
    if not played.stopped and (study := print_study(out, folder)) is not None:
        write_json(args.json, study.to_json())
    return end_study(out, folder, played)


def _runs(args: argparse.Namespace, seeds: Sequence[int]) -> Runs:
    from evalharness.base.terminal import say
    from evalharness.cli.options import config_of

    config = config_of(args)
    if config.policy.temperature == 0 and (config.policy.model == "oracle" or not config.policy.is_scripted):
        say(
            "evalharness: at temperature 0 the runs of all seeds are nearly identical; for different runs give "
            "--temperature 1"
        )
    return {f"seed-{seed}": config.changed(seed=seed) for seed in seeds}
