"""`evalharness refine scripts | trajectories | show`: training data that a served model writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError, at_least, nearest
from evalharness.cli.common import add_json_option
from evalharness.cli.output import make_console, note, results_console, show_outcome, write_json
from evalharness.cli.parser import Commands, argument, subcommand

if TYPE_CHECKING:
    from evalharness.models.asking import Outcome
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
    argument(
        scripts,
        "--names {bare,placed}",
        "bare: an action's name may lack parameters, as in the paper; placed: it contains all of them",
        default="bare",
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
    readings = trajectories.add_argument_group("where the paper's sources differ")
    argument(
        readings,
        "--excuse {any,parameter}",
        "an action that the script lacks is allowed if the next turn has any error flag, or only "
        "if it has parameter_error",
        default="any",
    )
    argument(readings, "--least-errors", "minimum number of error turns", type=int, choices=(2, 1), default=2)
    argument(
        readings,
        "--count-errors {all,call}",
        "count error turns in kept and new turns, or only in those of the last call",
        default="all",
    )
    argument(
        readings,
        "--last-turn {drop,keep}",
        "drop or keep the last turn of a game without success (algorithm 1 drops, section 3.1 keeps)",
        default="drop",
    )
    trajectories.add_late(_add_synthesis_options)

    show = subcommand(actions, "show", _show, "print scripts, trajectories, or their table")
    argument(show, "folder DIR|FILE", "folder of scripts or trajectories, or a data set")
    argument(
        show, "key KEY", "print this persona (persona-...), or this conversation of a data set", nargs="?"
    )
    argument(show, "--first N", "print the first N")
    argument(show, "--rejected", "with --first: print rejected ones, with their signals")
    add_json_option(show)


def _add_synthesis_options(parser: argparse.ArgumentParser) -> None:
    from evalharness.cli.options import SERVING, add_fields, add_model

    what = add_model(parser, "model", "the model")
    add_fields(what, _SAMPLING, **_DEFAULTS)
    argument(what, "--calls N", "maximum number of calls for a persona, with those for its script", default=4)
    argument(what, "--prompts DIR", "folder with your own script.yaml and trajectory.yaml")
    argument(what, "--plain", "do not ask the server for structured output (JSON schema)")
    how = parser.add_argument_group("how to do it")
    argument(how, "-o --output DIR", "folder for the results", required=True)
    add_fields(how, (*SERVING, "replicas"))
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
    """Write a script for each persona: a world, a goal, and actions with regular expressions. Every script is
    verified. The same command continues; a larger -n adds personas. docs/refine.md
    """
    from evalharness.training.synthesis.personas import read_personas
    from evalharness.training.synthesis.synthesis import make_scripts

    what = _synthesis(args)
    for line in read_personas(args.personas).complaints():
        note(line)
    return _make(
        args,
        lambda watch: make_scripts(what, args.personas, args.n, bare_names=args.names == "bare", watch=watch),
    )


def _trajectories(args: argparse.Namespace) -> int:
    """A model plays Dungeon Master and player of each script of a folder. Every trajectory is verified. Passed
    trajectories become training data, data.jsonl. The same command continues. docs/refine.md
    """
    from evalharness.training.synthesis.synthesis import make_trajectories
    from evalharness.training.synthesis.verify import Readings

    what = _synthesis(args)
    readings = Readings(args.excuse, args.least_errors, args.count_errors, args.last_turn, args.errors)
    return _make(args, lambda watch: make_trajectories(what, args.scripts, args.n, readings, watch=watch))


def _make(args: argparse.Namespace, make: Callable[[Any], Outcome]) -> int:
    from evalharness.models.work import watch_work
    from evalharness.training.synthesis.show import verification_table

    try:
        made = make(lambda progress: watch_work(progress, make_console(stderr=True)))
    except (KeyboardInterrupt, SystemExit):
        note(f"stopped; every call that was answered is in {args.output}")
        raise
    return show_outcome(args, made, verification_table(made.summary), "personas are left to make")


def _show(args: argparse.Namespace) -> int:
    """Print how many scripts or trajectories of a folder passed at which call, and why others failed. With KEY or
    --first N print scripts or trajectories. For a data set print conversations, with the trained turns and errors.
    """
    from evalharness.training.synthesis.outcome import summarize
    from evalharness.training.synthesis.show import record_lines, verification_table
    from evalharness.training.synthesis.synthesis_store import finished

    if args.rejected and args.first is None:
        raise UserError("--rejected goes with --first N")
    if args.folder.is_file():
        return _show_data(args)
    console = results_console(args)
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


def _show_data(args: argparse.Namespace) -> int:
    """Conversations of a data set: those of KEY, or the first ones."""
    from evalharness.training.commands.refine_common import say_unfit
    from evalharness.training.datasets.layouts import Unfit, read_any
    from evalharness.training.datasets.show import conversation_lines

    if args.rejected:
        raise UserError(
            f"{args.folder} is a data set; --rejected goes with a folder of scripts or trajectories"
        )
    unfit = Unfit()
    conversations = list(read_any(args.folder, unfit))
    say_unfit(args.folder, unfit)
    if args.key is None:
        chosen = conversations[: max(1 if args.first is None else args.first, 0)]
    else:
        chosen = [conversation for conversation in conversations if conversation.id == args.key]
        if not chosen:
            known = [conversation.id for conversation in conversations]
            raise UserError(f"{args.folder} has no conversation {args.key!r}{nearest(args.key, known)}")
    console = results_console(args)
    for conversation in chosen:
        for line in conversation_lines(conversation):
            console.print(line)
        console.print()
    if args.key is None and len(chosen) < len(conversations):
        console.print(f"{len(chosen)} of {len(conversations)} conversations (more: --first N)", style="dim")
    write_json(args.json, [conversation.to_json() for conversation in chosen])
    return 0
