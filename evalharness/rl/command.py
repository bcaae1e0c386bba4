"""The command `evalharness env serve`: environments for trainers."""

from __future__ import annotations

import argparse

from evalharness.base.errors import at_least
from evalharness.cli.common import add_data_option, data_folder
from evalharness.cli.output import note, say
from evalharness.cli.parser import CommandParser, argument, subcommand

HELP = "serve the environments to a trainer (OpenEnv)"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    serve = subcommand(actions, "serve", run, "serve one family or all of them")
    argument(serve, "family FAMILY", "babyai, alfworld, ...; or all")
    argument(serve, "--train-seeds SEEDS", "suite seeds of the split `train`, such as 1-8,12", default="1")
    argument(
        serve,
        "--validation-seeds SEEDS",
        "suite seeds of the split `validation`, such as 1001 (default: no such split)",
    )
    argument(
        serve,
        "--suite SUITE",
        "suite of the split `train`: open (default), alfworld-train (imported), or an evaluation suite if "
        "--allow-eval-tasks is given",
        default="open",
    )
    argument(
        serve,
        "--allow-eval-tasks",
        "also serve suite seed 0 or a published suite; every episode's state says so",
    )
    argument(
        serve,
        "--reward {success,progress_gain}",
        "success (default): 1 at the end of a solved task; progress_gain: how much the turn raised "
        "the progress rate",
        default="success",
    )
    argument(serve, "--max-turns N", "turns of an episode (default: the family's own)")
    argument(
        serve,
        "--perturb NAME",
        "other words for the actions, as in `run --perturb`; random: new words for each episode of `train`",
    )
    argument(serve, "--seed N", "seed of the order of tasks, and of the words of --perturb random", default=0)
    argument(serve, "--prompts DIR", "folder with your own prompt files, as in `run --prompts`")
    argument(
        serve,
        "--history-thinking {strip,keep}",
        "whether `kept`, the reply as the conversation keeps it, includes reasoning",
        default="strip",
    )
    argument(serve, "--sessions N", "maximum number of sessions at the same time", default=256)
    argument(
        serve,
        "--waiting N",
        "number of clients that may wait for a session; more clients get status 429",
        default=64,
    )
    argument(
        serve,
        "--host ADDRESS",
        "address to listen on (default: 127.0.0.1); on any other, clients need the token that is printed, or that "
        "of $EVALHARNESS_ENV_TOKEN",
        default="127.0.0.1",
    )
    argument(serve, "--port PORT", "port; 0: a free one", default=8000)
    add_data_option(serve)


def run(args: argparse.Namespace) -> int:
    """Serve environments to a trainer: TRL, verifiers, SkyRL, or any client of OpenEnv. The splits `train` and
    `validation` come from generated suites of different seeds, which are made if they are missing. Evaluation tasks are
    not served. docs/trainers/index.md
    """
    from evalharness.envs import specs
    from evalharness.protocol.drawn import training_name
    from evalharness.rl.server.serving import RunningServer, ServeOptions, select_families, serve
    from evalharness.rl.server.tasks import RequestedTasks
    from evalharness.suites.selection import parse_seeds

    at_least(0, waiting=args.waiting)
    at_least(1, sessions=args.sessions, max_turns=args.max_turns)
    known = specs()
    tasks = RequestedTasks(
        families=select_families(known, args.family, args.suite),
        train_seeds=parse_seeds("--train-seeds", args.train_seeds) if args.suite == "open" else (),
        validation_seeds=parse_seeds("--validation-seeds", args.validation_seeds)
        if args.validation_seeds
        else (),
        suite=args.suite,
        allow_eval_tasks=args.allow_eval_tasks,
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
    )

    def ready(server: RunningServer) -> None:
        counts = ", ".join(f"{len(tasks)} {split} tasks" for split, tasks in server.table.splits.items())
        say(f"serving {args.family}: {counts}, up to {args.sessions} sessions", stderr=False)
        if server.token is not None:
            say(f"token: {server.token}", stderr=False)
        say(f"{server.url}   (Ctrl-C ends it)", stderr=False)

    try:
        serve(options, known, data_folder(args), note, ready)
    except KeyboardInterrupt:
        return 0
    return 0
