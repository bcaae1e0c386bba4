"""Make and check open suites: the built-in one, and new ones from any seed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import InfrastructureError, at_least
from evalharness.base.text import duration
from evalharness.cli.common import add_json_option, families_of, open_families, titles
from evalharness.cli.output import make_console, results_console, write_json
from evalharness.cli.parser import CommandParser, argument, subcommand

if TYPE_CHECKING:
    from evalharness.suites.open import Proven


HELP = "make and check open suites"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    build = subcommand(actions, "build", _build, "generate, prove and save the suite of a seed")
    argument(build, "--suite-seed N", "seed of the suite; the suite of seed 0 is built in", required=True)
    argument(build, "--tasks LIST", "families, separated by commas", default="all")
    argument(build, "--force", "generate the tasks again even if their file exists")
    argument(
        build,
        "--check",
        "generate again and compare with the existing files; write nothing; exit status 1 if they differ",
    )
    argument(build, "-o --output DIR", "write the files to DIR instead")
    argument(build, "--proofs FILE", "also write the hash and plan length of each task as CSV")
    add_json_option(build)


def _build(args: argparse.Namespace) -> int:
    """Generate the tasks of an open suite from a seed, and write a file for each family. A task is kept only if its
    oracle's plan has 3 to 30 turns and succeeds with full progress. The files are the same on every machine. Run the
    same command again to continue. Seed 0 is built in: it is generated again and compared with the built-in files."""
    import time

    from evalharness.envs.base import tasks_hash
    from evalharness.models.work import WorkProgress, watch_work
    from evalharness.suites import open as suites

    seed = args.suite_seed
    at_least(0, suite_seed=seed)
    known, names = open_families(), titles()
    check = args.check or (seed == suites.FROZEN_SEED and args.output is None)
    out = results_console(args)
    report: list[dict[str, Any]] = []
    everything: list[Proven] = []
    same = True
    for spec in map(known.__getitem__, families_of(args.tasks, known, all_is_one=True)):
        stored = None if check or args.force or args.output else suites.read_frozen(spec, seed)
        started = time.monotonic()
        if stored is None:
            progress = WorkProgress(f"{names[spec.family]}, tasks", spec.suites.expected["open"])
            with watch_work(progress, make_console(stderr=True)):
                try:
                    rows = suites.build(spec, seed, progress.finish)
                except suites.UnprovenTaskError as error:
                    raise InfrastructureError(f"the generator of {spec.title} failed: {error}") from error
        else:
            rows = stored
        took = time.monotonic() - started
        turns = sorted(row.proof.plan_turns for row in rows)
        entry: dict[str, Any] = {
            "family": spec.family,
            "tasks": len(rows),
            "tasks_sha256": tasks_hash([row.task for row in rows]),
            "plan_turns": {"least": turns[0], "median": turns[len(turns) // 2], "most": turns[-1]},
            "hard": sum(row.task.difficulty == "hard" for row in rows),
            "seconds": round(took, 1),
        }
        if check:
            entry["differences"] = suites.differences(spec, seed, rows)
            done = (
                "as frozen" if not entry["differences"] else "DIFFERS: " + ", ".join(entry["differences"][:5])
            )
            same = same and not entry["differences"]
        elif stored is not None:
            done = "frozen already"
        else:
            entry["file"] = str(suites.freeze(spec, seed, rows, args.output))
            done = f"made in {duration(took)}"
        out.print(
            f"{names[spec.family]:<13}{len(rows):>4} tasks, plans of {turns[0]} to {turns[-1]} turns, "
            f"{entry['hard']:>3} hard, sha256 {str(entry['tasks_sha256'])[:12]}: {done}",
            soft_wrap=True,
        )
        report.append(entry)
        everything += rows
    if not check:
        out.print(f"suite folder: {args.output or suites.suite_folder(seed)}", soft_wrap=True)
    if args.proofs:
        suites.write_proofs(args.proofs, everything)
    write_json(args.json, {"suite": "open", "suite_seed": seed, "families": report})
    return 0 if same else 1
