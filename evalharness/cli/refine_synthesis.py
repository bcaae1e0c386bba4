"""`evalharness refine scripts | trajectories | show`: training data that a served model writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.cli.common import add_json_option, write_json
from evalharness.errors import UserError

if TYPE_CHECKING:
    from evalharness.config import RunConfig
    from evalharness.refine import Made, Synthesis

_SCRIPTS = """\
A persona becomes a script: a world of places and objects, a goal, and every action with its expression. Each script is
verified; one that fails is asked for again with its mistakes. The same command continues an interrupted folder, a
larger -n extends it. docs/refine.md
"""
_TRAJECTORIES = """\
A model plays Dungeon Master and player through each script of a folder. Each trajectory is verified (algorithm 1 of the
paper); what passed of a rejected one is kept, and the next call continues it. Passed trajectories are written as
training data, data.jsonl. The same command continues an interrupted folder. docs/refine.md
"""
_SHOW = """\
Print the table of verification of a folder of scripts or trajectories: how many passed at which call, and why the
others did not. With KEY, or with --first N, the scripts or trajectories themselves.
"""
_TEMPERATURE = 1.0
_MAX_TOKENS = 4096


def register(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    scripts = actions.add_parser("scripts", help="have a model write scripts of worlds", description=_SCRIPTS)
    scripts.add_argument(
        "--personas",
        type=Path,
        metavar="FILE",
        help='JSON lines of {"persona": "..."}, as Persona-Hub has them (default: 200 of our own)',
    )
    scripts.add_argument(
        "-n", type=int, required=True, metavar="N", help="how many personas, drawn by --seed"
    )
    _add_synthesis_options(scripts)
    scripts.set_defaults(run=_scripts)

    trajectories = actions.add_parser(
        "trajectories", help="have a model play scripts with errors and refinement", description=_TRAJECTORIES
    )
    trajectories.add_argument(
        "--scripts", type=Path, required=True, metavar="DIR", help="folder of `refine scripts`"
    )
    trajectories.add_argument("-n", type=int, metavar="N", help="only the first N scripts (default: all)")
    readings = trajectories.add_argument_group("where the paper's sources differ")
    readings.add_argument(
        "--excuse",
        choices=("any", "parameter"),
        default="any",
        help="an action that the script lacks is excused by any error flag of the next turn, or by parameter_error "
        "alone (default: any)",
    )
    readings.add_argument(
        "--least-errors", type=int, choices=(2, 1), default=2, help="error turns at least (default: 2)"
    )
    readings.add_argument(
        "--count-errors",
        choices=("all", "call"),
        default="all",
        help="error turns are counted over kept and new turns, or over those of the last call (default: all)",
    )
    _add_synthesis_options(trajectories)
    trajectories.set_defaults(run=_trajectories)

    show = actions.add_parser("show", help="print scripts, trajectories, or their table", description=_SHOW)
    show.add_argument("folder", type=Path, metavar="DIR", help="folder of scripts or trajectories")
    show.add_argument("key", nargs="?", metavar="KEY", help="print this persona's (persona-...)")
    show.add_argument("--first", type=int, metavar="N", help="print the first N")
    show.add_argument(
        "--rejected", action="store_true", help="with --first: of the rejected, with their signals"
    )
    add_json_option(show)
    show.set_defaults(run=_show)


def _add_synthesis_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("the model")
    what.add_argument(
        "--model",
        action="append",
        metavar="MODEL",
        help="a checkpoint directory or hub id (served by a vLLM started for it), http://host:port/v1 (any "
        "OpenAI-compatible server; may be given several times), or demo",
    )
    what.add_argument("--model-name", metavar="NAME", help="the name an endpoint serves the model by")
    what.add_argument("--temperature", type=float, metavar="T", help=f"default: {_TEMPERATURE:g}")
    what.add_argument("--top-p", type=float, metavar="P", help="default: 1")
    what.add_argument(
        "--max-tokens", type=int, metavar="N", help=f"tokens of one reply (default: {_MAX_TOKENS})"
    )
    what.add_argument("--seed", type=int, metavar="N", help="of the draw and of sampling (default: 0)")
    what.add_argument(
        "--calls",
        type=int,
        default=4,
        metavar="N",
        help="calls a persona, its script's included (default: 4)",
    )
    what.add_argument(
        "--prompts", type=Path, metavar="DIR", help="folder with script.yaml, trajectory.yaml of your own"
    )
    what.add_argument(
        "--plain", action="store_true", help="do not ask the server for structured output (JSON schema)"
    )
    how = parser.add_argument_group("how to do it")
    how.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the results")
    how.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="conversations in flight at most (default: found while it goes on)",
    )
    how.add_argument(
        "--replicas", type=int, metavar="N", help="vLLM servers started for the model (default: 1)"
    )
    how.add_argument(
        "--vllm", metavar="PATH", help="the vLLM to start (default: see `evalharness server status`)"
    )
    how.add_argument("--vllm-args", metavar="ARGS", help='passed to vLLM: "--max-model-len 32768"')
    how.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the endpoint's key"
    )
    how.add_argument("--timeout", type=float, metavar="S", help="seconds for one reply (default: 600)")
    how.add_argument(
        "--attempts", type=int, metavar="N", help="tries of a persona whose infrastructure fails (3)"
    )
    how.add_argument(
        "--price-in", type=float, metavar="P", help="price of a million prompt tokens, for the cost"
    )
    how.add_argument("--price-out", type=float, metavar="P", help="price of a million completion tokens")
    add_json_option(how)  # type: ignore[arg-type]


def _model_config(args: argparse.Namespace) -> RunConfig:
    from evalharness.config import make_config

    names = (
        *("model", "model_name", "temperature", "top_p", "max_tokens", "seed", "concurrency", "replicas"),
        *("vllm", "vllm_args", "api_key_env", "timeout", "attempts"),
    )
    flags: dict[str, Any] = {"temperature": _TEMPERATURE, "max_tokens": _MAX_TOKENS}
    flags |= {name: value for name in names if (value := getattr(args, name)) is not None}
    return make_config(flags)


def _synthesis(args: argparse.Namespace) -> Synthesis:
    from evalharness.refine import Synthesis, TokenPrices

    for option, value in (("-n", args.n), ("--calls", args.calls)):
        if value is not None and value < 1:
            raise UserError(f"{option} is at least 1")
    for option, price in (("--price-in", args.price_in), ("--price-out", args.price_out)):
        if price is not None and not 0 <= price < float("inf"):
            raise UserError(f"{option} is a price, 0 or more")
    if (args.price_in is None) != (args.price_out is None):
        raise UserError("a cost needs both prices: --price-in and --price-out")
    return Synthesis(
        _model_config(args),
        args.output,
        args.prompts,
        args.calls,
        args.plain,
        TokenPrices(args.price_in, args.price_out),
    )


def _scripts(args: argparse.Namespace) -> int:
    from evalharness.refine import make_scripts, read_personas

    what = _synthesis(args)
    for line in read_personas(args.personas).complaints():
        _say(line)
    return _make(args, lambda watch: make_scripts(what, args.personas, args.n, watch=watch))


def _trajectories(args: argparse.Namespace) -> int:
    from evalharness.refine import Readings, make_trajectories

    what = _synthesis(args)
    readings = Readings(args.excuse, args.least_errors, args.count_errors)
    return _make(args, lambda watch: make_trajectories(what, args.scripts, args.n, readings, watch=watch))


def _say(line: str) -> None:
    from evalharness.report.terminal import say

    say(f"evalharness: {line}")


def _make(args: argparse.Namespace, make: Callable[[Any], Made]) -> int:
    from evalharness.refine import verification_table, watch_synthesis
    from evalharness.report.terminal import make_console

    try:
        made = make(lambda progress: watch_synthesis(progress, make_console(stderr=True)))
    except (KeyboardInterrupt, SystemExit):
        _say(f"stopped; every call that was answered is in {args.output}")
        raise
    console = make_console(stderr=args.json == "-")
    console.print(verification_table(made.summary))
    console.print(f"folder: {made.folder}", soft_wrap=True, highlight=False, markup=False)
    write_json(args.json, made.summary)
    if made.summary["left"]:
        _say(f"{made.summary['left']} personas are left to make; the same command continues")
    if made.stopped:
        _say(f"stopped early: {made.stopped}")
    return made.exit_status


def _show(args: argparse.Namespace) -> int:
    from evalharness.errors import nearest
    from evalharness.refine import finished, record_lines, summarize, verification_table
    from evalharness.report.terminal import make_console

    if args.rejected and args.first is None:
        raise UserError("--rejected goes with --first N")
    console = make_console(stderr=args.json == "-")
    summary = summarize(args.folder)
    if args.key is None and args.first is None:
        console.print(verification_table(summary))
        write_json(args.json, summary)
        return 0
    passed, rejected = finished(args.folder)
    if args.key is None:
        lines = (rejected if args.rejected else passed)[: max(args.first, 0)]
    else:
        lines = [line for line in (*passed, *rejected) if line.key == args.key]
        if not lines:
            keys = [line.key for line in (*passed, *rejected)]
            raise UserError(f"{args.folder} has no {args.key!r}{nearest(args.key, keys) if keys else ''}")
    chosen = [line.read() for line in lines]
    for number, record in enumerate(chosen):
        if number:
            console.print()
        for line in record_lines(args.folder, record):
            console.print(line)
    write_json(args.json, chosen)
    return 0
