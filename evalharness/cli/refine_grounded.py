"""`evalharness refine grounded`: training trajectories made in the real simulators."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.cli.common import add_json_option, data_folder, titles, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from evalharness.training.grounded.grounded import Order
from evalharness.cli.refine_common import Commands, add_exclusion, excluded_seeds, make_console, print_counts

_GROUNDED = """\
Trajectories with errors and their correction, made in the real simulators. Tasks come from open suites N, N+1, ...;
those that models are evaluated on are refused. The same command gives the same bytes, and continues.
docs/grounded-data.md
"""


def register(commands: Commands[argparse.ArgumentParser]) -> None:

    parser = commands.add_parser(
        "grounded", help="trajectories with errors, made in the real simulators", description=_GROUNDED
    )
    parser.add_argument(
        "--tasks", default="all", metavar="LIST", help="families, separated by commas (default: all)"
    )
    parser.add_argument(
        "--suite-seed",
        type=int,
        required=True,
        metavar="N",
        help="the first open suite to take tasks of; not 0",
    )
    parser.add_argument(
        "-n", "--samples", type=int, required=True, metavar="N", help="trajectories, in equal shares"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the data set, FILE.jsonl"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of errors and wordings (default: 0)"
    )
    parser.add_argument(
        "--per-task", type=int, metavar="N",
        help="trajectories of one task, with different errors and wordings (default: 2 to 8, by family)",
    )  # fmt: skip
    parser.add_argument(
        "--error-runs", default="1-3", metavar="A-B",
        help="runs of one to four errors in a trajectory, least and most; 0 for none (default: 1-3)",
    )  # fmt: skip
    parser.add_argument(
        "--search", action=argparse.BooleanOptionalAction, default=True,
        help="agents without privileged information play, where there are such (default); --no-search: the plan",
    )  # fmt: skip
    parser.add_argument(
        "--wordings", type=int, default=1, metavar="N",
        help="at most N wordings of each thought; 0: all there are (default: 1, the easiest to learn)",
    )  # fmt: skip
    parser.add_argument(
        "--kinds", default="", metavar="LIST",
        help="only these kinds of tasks, separated by commas: --tasks pddl --kinds gripper (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--balance", action="store_true",
        help="make eight times as many and take those with rare decisions first, up to a half",
    )  # fmt: skip
    parser.add_argument(
        "--perturb", metavar="NAME",
        help="word the actions differently, as in: run --perturb P1; random: drawn for each trajectory, by --seed",
    )  # fmt: skip
    parser.add_argument(
        "--distractors", type=int, default=0, metavar="N",
        help="N objects, and a room for every four, that the goal does not need, in each task (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--max-turns",
        type=int,
        metavar="N",
        help="limit of a trajectory, errors included (default: that of a run)",
    )
    parser.add_argument(
        "--thoughts", metavar="MODEL",
        help="a model, as in `run --model`, writes the thoughts (default: by rule)",
    )  # fmt: skip
    parser.add_argument("--model-name", metavar="NAME", help="the name an endpoint serves the model by")
    parser.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the endpoint's key"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of each family (default: cores)")
    parser.add_argument("--force", action="store_true", help="write over FILE when it was made otherwise")
    add_exclusion(parser, evaluated=False)
    add_json_option(parser)
    parser.set_defaults(run=_grounded)


def _families(selection: str) -> tuple[str, ...]:
    from evalharness.base.errors import UserError, nearest
    from evalharness.envs import specs

    known = [family for family, spec in specs().items() if spec.suites.expected.get("open")]
    if selection == "all":  # the same families as in `run --tasks all`
        return tuple(sorted(family for family in known if specs()[family].own.in_all))
    chosen = {name.strip() for name in selection.split(",")}
    for name in sorted(chosen):
        if name not in known:
            raise UserError(f"--tasks: unknown family {name!r}{nearest(name, sorted(known))}")
    return tuple(sorted(chosen))


def _error_plan(text: str) -> Any:
    from evalharness.base.errors import UserError
    from evalharness.training.grounded.draft import ErrorPlan

    least, _, most = text.partition("-")
    if not least.isdecimal() or not (most or least).isdecimal() or int(least) > int(most or least):
        raise UserError(f"--error-runs {text!r}: write a number or a range, as in 1-3")
    return ErrorPlan((int(least), int(most or least))) if int(most or least) else None


def _order(args: argparse.Namespace) -> Order:
    from evalharness.envs.base import MAX_TURNS
    from evalharness.protocol.drawn import training_name
    from evalharness.training.grounded.grounded import Order

    return Order(
        families=_families(args.tasks),
        suite_seed=args.suite_seed,
        samples=args.samples,
        seed=args.seed,
        per_task=args.per_task,
        errors=_error_plan(args.error_runs),
        search=args.search,
        wordings=args.wordings or None,
        balance=args.balance,
        kinds=tuple(sorted({name.strip() for name in args.kinds.split(",") if name.strip()})),
        perturb=training_name(args.perturb),
        distractors=args.distractors,
        max_turns=args.max_turns or MAX_TURNS,
        exclude_suite_seeds=excluded_seeds(args),
    )


def _grounded(args: argparse.Namespace) -> int:
    import time
    from dataclasses import replace

    from evalharness.envs import specs
    from evalharness.models.event_loop import run_to_end
    from evalharness.training.datasets.sample import read_manifest
    from evalharness.training.grounded.grounded import check, is_made, make
    from evalharness.training.grounded.hindsight import prepare_writer, thinking
    from evalharness.training.grounded.making import watch_making

    order = _order(args)
    check(order)
    writer = None
    if args.thoughts is not None:
        writer = prepare_writer(args.thoughts, args.model_name, args.api_key_env, order.seed)
        order = replace(order, thoughts=dict(writer.identity))
    out = make_console(stderr=args.json == "-")
    if not args.force and is_made(order, args.output):
        out.print(f"{args.output} is made already", soft_wrap=True)
        manifest = read_manifest(args.output) or {}
        write_json(args.json, manifest)
        return 0
    names, started = titles(), time.monotonic()
    progress = order.counts()

    async def making() -> dict[str, Any]:
        async with thinking(writer, order.seed, args.output) as think:
            return await make(
                order, specs(), args.output,
                data=data_folder(args), workers=args.workers, progress=progress, think=think,
            )  # fmt: skip

    with watch_making(progress, names, make_console(stderr=True)):
        manifest = run_to_end(making())
    _show_grounded(out, manifest, names)
    out.print(f"wrote {args.output} in {time.monotonic() - started:.0f} s", soft_wrap=True)
    write_json(args.json, manifest)
    return 0


def _show_grounded(out: Console, manifest: Mapping[str, Any], names: Mapping[str, str]) -> None:
    from evalharness.training.datasets.decisions import lines

    rows = manifest["made"]["families"]
    for family, row in rows.items():
        refused = sum(row["overlap_refused"].values())
        seeds = row["suite_seeds"]
        span = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]}-{seeds[-1]}" if seeds else "none"
        out.print(
            f"{names[family]:<13}{row['samples']:>6} of {row['tasks']} tasks, suite seed {span}; "
            f"{refused} tasks refused as evaluated or used already, "
            f"{sum(row['not_made'].values())} trajectories not made",
            soft_wrap=True,
        )  # fmt: skip
    print_counts(out, manifest["counts"])
    for line in lines({names[f]: row["decisions"] for f, row in rows.items() if row["decisions"]}):
        out.print(line, soft_wrap=True)
