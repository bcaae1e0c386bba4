"""`evalharness env`: the environments for other people's trainers."""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_data_option, data_folder

_SERVE = """\
Serve environments to a trainer: TRL, verifiers, SkyRL, or whatever speaks OpenEnv. `train` and `validation` come from
open suites of different seeds, made where they are missing. Tasks that models are evaluated on are not served.
docs/trainers/index.md
"""


HELP = "serve the environments to a trainer (OpenEnv)"
DESCRIPTION = "Environments for trainers."


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    serve = actions.add_parser("serve", help="serve one family or all of them", description=_SERVE)
    serve.add_argument("family", metavar="FAMILY", help="babyai, alfworld, ...; or all")
    serve.add_argument(
        "--train-seeds",
        default="1",
        metavar="SEEDS",
        help="suite seeds of the split `train`, 1-8,12 (default: 1)",
    )
    serve.add_argument(
        "--validation-seeds",
        metavar="SEEDS",
        help="suite seeds of the split `validation`, such as 1001 (default: there is no such split)",
    )
    serve.add_argument(
        "--suite",
        default="open",
        metavar="SUITE",
        help="where `train` comes from (default: open); any other is an evaluation's and needs --allow-eval-tasks",
    )
    serve.add_argument(
        "--allow-eval-tasks",
        action="store_true",
        help="serve suite seed 0 or a published suite, which is refused otherwise; every episode's state says so",
    )
    serve.add_argument(
        "--reward",
        choices=("success", "progress_gain"),
        default="success",
        help="success (default): 1 at the end of a solved task; progress_gain: what a turn adds to the progress rate",
    )
    serve.add_argument(
        "--max-turns", type=int, metavar="N", help="turns of an episode (default: the family's own)"
    )
    serve.add_argument(
        "--perturb",
        metavar="NAME",
        help="other words for the actions, as `run --perturb`; random: drawn for each episode of `train`",
    )
    serve.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the words of --perturb random (default: 0)"
    )
    serve.add_argument(
        "--distractors",
        type=int,
        default=0,
        metavar="N",
        help="N objects, and a room for every four, that the goal does not need, in each task of `train` (default: 0)",
    )
    serve.add_argument("--prompts", type=Path, metavar="DIR", help="prompt files, as `run --prompts`")
    serve.add_argument(
        "--history-thinking",
        choices=("strip", "keep"),
        default="strip",
        help="whether reasoning is in `kept`, the reply as the conversation goes on, as in `run` (default: strip)",
    )
    serve.add_argument(
        "--sessions", type=int, default=256, metavar="N", help="at the same time (default: 256)"
    )
    serve.add_argument(
        "--waiting",
        type=int,
        default=64,
        metavar="N",
        help="clients that may wait for a session; one more gets status 429 (default: 64)",
    )
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (default: 127.0.0.1); on any other, clients need the token that is printed, or that "
        "of $EVALHARNESS_ENV_TOKEN",
    )
    serve.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port; 0: a free one (default: 8000)"
    )
    serve.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="hold the environments on the nodes of a Ray cluster, as `run --cluster`",
    )
    serve.add_argument(
        "--cluster-install", action="store_true", help="have Ray install the simulators' libraries on nodes"
    )
    add_data_option(serve)
    serve.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from evalharness.base.errors import UserError, at_least
    from evalharness.base.terminal import say
    from evalharness.envs import specs
    from evalharness.protocol.drawn import training_name
    from evalharness.suites.selection import parse_seeds
    from evalharness.training.envserver.serving import Ready, ServeOptions, chosen_families, serve
    from evalharness.training.envserver.tasks import Wanted

    if not 0 <= args.port <= 65535:
        raise UserError(f"--port {args.port}: a port is a number up to 65535, or 0 for a free one")
    at_least(0, waiting=args.waiting)
    at_least(1, sessions=args.sessions, max_turns=args.max_turns)
    known = specs()
    tasks = Wanted(
        families=chosen_families(known, args.family, args.suite),
        train_seeds=parse_seeds("--train-seeds", args.train_seeds) if args.suite == "open" else (),
        validation_seeds=parse_seeds("--validation-seeds", args.validation_seeds)
        if args.validation_seeds
        else (),
        suite=args.suite,
        allow_eval_tasks=args.allow_eval_tasks,
        distractors=args.distractors,
    )
    options = ServeOptions(
        args.family,
        tasks,
        reward=args.reward,
        max_turns=args.max_turns,
        perturb=training_name(args.perturb),
        seed=args.seed,
        prompts=args.prompts,
        keep_thinking=args.history_thinking == "keep",
        sessions=args.sessions,
        waiting=args.waiting,
        host=args.host,
        port=args.port,
        cluster=args.cluster,
        cluster_install=args.cluster_install,
    )

    def ready(found: Ready) -> None:
        counts = ", ".join(f"{len(tasks)} {split} tasks" for split, tasks in found.table.splits.items())
        say(f"serving {args.family}: {counts}, up to {args.sessions} sessions", stderr=False)
        if found.token is not None:
            say(f"token: {found.token}", stderr=False)
        say(f"{found.url}   (Ctrl-C ends it)", stderr=False)

    try:
        serve(options, known, data_folder(args), lambda text: say(f"evalharness: {text}"), ready)
    except KeyboardInterrupt:
        return 0
    return 0
