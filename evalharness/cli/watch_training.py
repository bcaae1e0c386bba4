"""Evaluate the policy that a trainer serves, again and again while the training goes on: success and progress on tasks
that it does not train on, with intervals, beside the training's own reward. The trainer plays in `evalharness env
serve`; a task that it is served and that is evaluated is refused. docs/trainers/while-training.md
"""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_csv_option, data_folder
from evalharness.cli.output import note, results_console
from evalharness.cli.parser import CommandParser, argument
from evalharness.cli.studies import end_study, play_study, show_training

HELP = "held-out scores of a policy while it is trained"
_USUAL = "--server --env --log --every --wait --tasks --suite --subset --output"
_EXAMPLES = """\
  evalharness watch-training --server http://host:8001/v1 --env http://host:8000 --every 500
  evalharness watch-training --server URL --env URL --log metrics.jsonl --every 50
  evalharness watch-training --server URL --env URL --suite open --subset 80
"""


def add_options(parser: CommandParser) -> None:
    from evalharness.cli.options import add_run_options

    study = parser.add_argument_group("the training")
    argument(study, "--server URL", "where the policy is served: http://host:port/v1 (vLLM)", required=True)
    argument(study, "--env URL", "the `evalharness env serve` that the trainer plays in", required=True)
    argument(
        study,
        "--log FILE",
        "where the trainer writes its step: JSON lines with `step`, or a trainer_state.json",
    )
    study.add_argument(
        "--every",
        type=int,
        default=50,
        metavar="N",
        help="evaluate every N steps; without --log every N training episodes (50)",
    )
    study.add_argument(
        "--wait",
        type=float,
        default=60.0,
        metavar="MINUTES",
        help="end when the training has not moved for so long (60); 0: evaluate once, if it is time, and end",
    )
    add_csv_option(study, "a row for each evaluation, family and measure")
    add_run_options(parser, without=("model", "lora", "lora_serve"))
    parser.set_short_help(_USUAL, _EXAMPLES)


def run(args: argparse.Namespace) -> int:
    from contextlib import closing

    from evalharness.cli.options import config_of
    from evalharness.envs import specs
    from evalharness.runs.evaluation import TrainingPoint, choose
    from evalharness.runs.study import WATCHED, Played, study_folder
    from evalharness.runs.study_results import training_result
    from evalharness.training.heldout.curve import HeldOutCurve, prove_disjoint
    from evalharness.training.heldout.trainer import EnvServer

    at_least(1, every=args.every)
    if not args.wait >= 0:  # NaN is not, either
        raise UserError(f"--wait {args.wait:g} is no number of minutes, 0 or more")
    config = config_of(args, model=args.server)
    if not config.policy.is_endpoint:
        raise UserError(f"--server {args.server}: give an address, http://host:port/v1")
    env = EnvServer(args.env)
    tasks = choose(config, data_folder(args)).tasks
    prove_disjoint(env.url, env.train_tasks(), tasks, specs())
    folder = study_folder(config, WATCHED)
    out = results_console(args)
    played = Played({}, ())
    with closing(HeldOutCurve(folder, env, args.log, args.every)) as curve:
        position = curve.look()
        for name in curve.unfinished(position):
            note(f"{name} was not finished, and its policy is gone: it is left out of the curve")
        while True:
            if curve.is_due(position):
                # Anew each time: the server may be another one by now.
                disjoint = prove_disjoint(env.url, env.train_tasks(), tasks, specs())
                name = curve.name(position)
                labelled = config.changed(label={**config.execution.label, curve.axis: str(position)})
                point = TrainingPoint(curve.axis, position, disjoint)
                played = play_study(WATCHED, folder, {name: labelled}, args, training=point)
                if played.exit_status == 0:
                    curve.complete(position)
                show_training(args, folder / WATCHED, training_result(folder))
                if played.stopped:
                    return end_study(out, folder, played)
            if args.wait:
                note(f"the training is at {curve.axis} {position}; Ctrl-C ends the watch")
            try:
                if not curve.wait(args.wait):
                    return end_study(out, folder, played)
            except KeyboardInterrupt:
                return end_study(out, folder, played)
            position = curve.look()
