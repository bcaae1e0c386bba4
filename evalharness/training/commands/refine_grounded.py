"""`evalharness refine grounded | correct`: make training trajectories in the real simulators."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_json_option, data_folder, families_of, open_families, titles
from evalharness.cli.output import make_console, results_console, write_json
from evalharness.cli.parser import Commands, argument, subcommand
from evalharness.training.commands.refine_common import (
    add_exclusion,
    add_output,
    make_exclusion,
    parse_excluded_seeds,
    print_counts,
    show_data_set,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from evalharness.training.grounded.grounded import DataRequest


def register(commands: Commands) -> None:
    parser = subcommand(
        commands, "grounded", _make_grounded, "make trajectories with errors in the real simulators"
    )
    argument(parser, "--tasks LIST", "families, separated by commas", default="all")
    argument(parser, "--suite-seed N", "seed of the first open suite; not 0", required=True)
    argument(
        parser, "-n --conversations N", "number of conversations, equally from each family", required=True
    )
    argument(parser, "-o --output FILE", "the data set, FILE.jsonl", required=True)
    argument(parser, "--seed N", "seed of errors", default=0)
    argument(
        parser,
        "--per-task N",
        "trajectories of one task, with different errors (default: 2 to 8, by family)",
    )
    argument(
        parser,
        "--error-runs A-B",
        "number of error sequences in a trajectory, from A to B; a sequence has one to four "
        "errors; 0 for none",
        default="1-3",
    )
    parser.add_argument(
        "--search", action=argparse.BooleanOptionalAction, default=True,
        help="an agent without privileged information plays each task, in families that have such an agent (default); "
        "--no-search: play the oracle's plan",
    )  # fmt: skip
    argument(
        parser,
        "--kinds LIST",
        "only these kinds of tasks, separated by commas: --tasks pddl --kinds gripper (default: all)",
        default="",
    )
    argument(
        parser,
        "--perturb NAME",
        "other words for the actions, as in: run --perturb P1; random: drawn for each trajectory, by --seed",
    )
    argument(parser, "--max-turns N", "maximum number of turns, errors included (default: as in a run)")
    argument(parser, "--workers N", "processes of each family (default: cores)")
    argument(parser, "--force", "overwrite FILE if it was made with other options")
    add_exclusion(parser, evaluated=False)
    add_json_option(parser)

    parser = subcommand(commands, "correct", _correct, "correct a model's own errors in the real simulators")
    argument(
        parser,
        "runs RUN",
        "runs of the model on open suites with another seed than 0: evalharness run --suite open "
        "--suite-seed 101",
        nargs="+",
    )
    argument(
        parser,
        "--per-episode N",
        "corrections of one episode, after its first N error sequences (default: 1)",
        default=1,
    )
    argument(
        parser,
        "--errors {own,none}",
        "none: the teacher plays the same tasks from the first turn, which gives data without errors",
        default="own",
    )
    argument(parser, "--workers N", "processes of each family (default: cores)")
    add_exclusion(parser)
    add_output(parser)
    add_json_option(parser)


def _error_plan(text: str) -> Any:
    from evalharness.training.grounded.draft import ErrorPlan

    least, _, most = text.partition("-")
    if not least.isdecimal() or not (most or least).isdecimal() or int(least) > int(most or least):
        raise UserError(f"--error-runs {text!r}: write a number or a range, as in 1-3")
    return ErrorPlan((int(least), int(most or least))) if int(most or least) else None


def _make_request(args: argparse.Namespace) -> DataRequest:
    from evalharness.envs.base import MAX_TURNS
    from evalharness.protocol.drawn import training_name
    from evalharness.training.grounded.grounded import DataRequest

    return DataRequest(
        families=tuple(families_of(args.tasks, open_families(), all_is_one=True)),
        suite_seed=args.suite_seed,
        samples=args.conversations,
        seed=args.seed,
        per_task=args.per_task,
        errors=_error_plan(args.error_runs),
        search=args.search,
        kinds=tuple(sorted({name.strip() for name in args.kinds.split(",") if name.strip()})),
        perturb=training_name(args.perturb),
        max_turns=args.max_turns or MAX_TURNS,
        exclude_suite_seeds=parse_excluded_seeds(args),
    )


def _make_grounded(args: argparse.Namespace) -> int:
    """Make trajectories with errors and corrections in the real simulators. The tasks are those of `run --suite open`
    with suite seeds N, N+1, ...; evaluation tasks are refused. Running the same command again writes an identical file.
    docs/grounded-data.md"""
    import time

    from evalharness.envs import specs
    from evalharness.models.event_loop import run_to_end
    from evalharness.training.datasets.conversation import read_manifest
    from evalharness.training.grounded.grounded import check, is_already_made, make
    from evalharness.training.grounded.making import watch_making

    at_least(1, workers=args.workers)
    request = _make_request(args)
    check(request)
    out = results_console(args)
    if not args.force and is_already_made(request, args.output):
        out.print(f"{args.output} was already made with these options", soft_wrap=True)
        manifest = read_manifest(args.output) or {}
        write_json(args.json, manifest)
        return 0
    names, started = titles(), time.monotonic()
    progress = request.counts()
    making = make(
        request, specs(), args.output, data=data_folder(args), workers=args.workers, progress=progress
    )
    with watch_making(progress, names, make_console(stderr=True)):
        manifest = run_to_end(making)
    _show_grounded(out, manifest, names)
    out.print(f"wrote {args.output} in {time.monotonic() - started:.0f} s", soft_wrap=True)
    write_json(args.json, manifest)
    return 0


def _show_grounded(out: Console, manifest: Mapping[str, Any], names: Mapping[str, str]) -> None:
    rows = manifest["made"]["families"]
    for family, row in rows.items():
        refused = sum(row["overlap_refused"].values())
        seeds = row["suite_seeds"]
        span = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]}-{seeds[-1]}" if seeds else "none"
        out.print(
            f"{names[family]:<13}{row['samples']:>6} of {row['tasks']} tasks, suite seed {span}; "
            f"{refused} tasks refused because they are evaluated or already used, "
            f"{sum(row['not_made'].values())} trajectories not made",
            soft_wrap=True,
        )  # fmt: skip
    print_counts(out, manifest["counts"])


def _correct(args: argparse.Namespace) -> int:
    """Correct the errors of a model's own runs. After an error, a rule-based agent without privileged information
    continues the episode. The episode is kept if this agent succeeds. Only this agent's turns are trained, not the
    model's. Running the same command again writes an identical file. docs/grounded-data.md"""
    from evalharness.envs import specs
    from evalharness.models.event_loop import run_to_end
    from evalharness.training.grounded.correction import correct, plan_correction
    from evalharness.training.grounded.making import watch_making
    from evalharness.training.grounded.takeover import Correction

    at_least(1, workers=args.workers)
    how = Correction(args.per_episode, args.errors)
    plan = plan_correction(args.runs, how, specs(), make_exclusion(args))
    progress = plan.counts()
    with watch_making(progress, titles(), make_console(stderr=True)):
        manifest: dict[str, Any] = run_to_end(
            correct(plan, specs(), args.output, workers=args.workers, progress=progress)
        )
    tally = manifest["made"]["tally"]
    lines = [f"{manifest['counts']['samples']:,} corrections of {tally['episodes']:,} episodes"]
    for name in ("left_out", "not_made"):
        lines += [f"  {count:,} {name.replace('_', ' ')}: {reason}" for reason, count in tally[name].items()]
    return show_data_set(args, lines, manifest)
