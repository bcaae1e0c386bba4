"""`evalharness refine scripts | trajectories`: have a served model write training data."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import at_least
from evalharness.cli.common import add_json_option
from evalharness.cli.output import make_console, note, show_outcome
from evalharness.cli.parser import Commands, argument, subcommand

if TYPE_CHECKING:
    from evalharness.models.many_requests import AskingResult
    from evalharness.training.synthesis.synthesis import Synthesis

_SAMPLING = ("temperature", "top_p", "max_tokens", "seed")
_DEFAULTS: dict[str, Any] = {"temperature": 1.0, "max_tokens": 4096}


def register(actions: Commands) -> None:
    scripts = subcommand(actions, "scripts", _scripts, "have a model write scripts of worlds")
    argument(
        scripts,
        "--personas FILE",
        'JSON lines of {"persona": "..."}, as Persona-Hub has them (default: 200 of our own)',
    )
    argument(scripts, "-n N", "number of personas, drawn by --seed", required=True)
    scripts.add_late(_add_synthesis_options)

    trajectories = subcommand(
        actions, "trajectories", _trajectories, "have a model play scripts with errors and refinement"
    )
    argument(trajectories, "--scripts DIR", "folder of `refine scripts`", required=True)
    argument(trajectories, "-n N", "only the first N scripts (default: all)")
    argument(
        trajectories,
        "--errors {some,none}",
        "none: make trajectories without errors, as the paper's no_refine_data",
        default="some",
    )
    trajectories.add_late(_add_synthesis_options)


def _add_synthesis_options(parser: argparse.ArgumentParser) -> None:
    from evalharness.cli.options import SERVING, add_model, add_options_of_run

    what = add_model(parser, "model", "the model")
    add_options_of_run(what, _SAMPLING, **_DEFAULTS)
    argument(what, "--calls N", "maximum number of calls for a persona, with those for its script", default=4)
    argument(what, "--prompts DIR", "folder with your own script.yaml and trajectory.yaml")
    argument(what, "--plain", "do not ask the server for structured output (JSON schema)")
    how = parser.add_argument_group("how to do it")
    argument(how, "-o --output DIR", "folder for the results", required=True)
    add_options_of_run(how, (*SERVING, "replicas"))
    add_json_option(how)


def _synthesis(args: argparse.Namespace) -> Synthesis:
    from evalharness.cli.options import attempts_of, policy_of
    from evalharness.training.synthesis.synthesis import Synthesis

    at_least(1, n=args.n, calls=args.calls)
    return Synthesis(
        policy_of(args, **{name: value for name, value in _DEFAULTS.items() if getattr(args, name) is None}),
        args.output,
        args.prompts,
        args.calls,
        args.plain,
        attempts_of(args),
    )


def _scripts(args: argparse.Namespace) -> int:
    """Write a script for each persona: places and objects, a goal, and actions with regular expressions. Every script
    is verified. Run the same command again to continue after a stop, or with a larger -n to add personas.
    docs/refine.md"""
    from evalharness.training.synthesis.personas import read_personas
    from evalharness.training.synthesis.synthesis import make_scripts

    what = _synthesis(args)
    for line in read_personas(args.personas).complaints():
        note(line)
    return _make(args, lambda watch: make_scripts(what, args.personas, args.n, watch=watch))


def _trajectories(args: argparse.Namespace) -> int:
    """Have a model play Dungeon Master and player in each script of a folder. Every trajectory is verified, and those
    that pass are written to data.jsonl as training data. Run the same command again to continue after a stop.
    docs/refine.md"""
    from evalharness.training.synthesis.synthesis import make_trajectories

    what = _synthesis(args)
    return _make(args, lambda watch: make_trajectories(what, args.scripts, args.n, args.errors, watch=watch))


def _make(args: argparse.Namespace, make: Callable[[Any], AskingResult]) -> int:
    from evalharness.models.work import watch_work
    from evalharness.training.synthesis.show import make_verification_table

    try:
        made = make(lambda progress: watch_work(progress, make_console(stderr=True)))
    except (KeyboardInterrupt, SystemExit):
        note(f"stopped; every call that was answered is in {args.output}")
        raise
    return show_outcome(args, made, make_verification_table(made.summary), "personas are left to make")
