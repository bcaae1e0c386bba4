"""Replay every recorded action and compute every score again. This proves that a run's scores follow from its actions;
it does not prove who chose the actions. The exit status is 1 if a score or an observation differs. docs/verify.md"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import note, require_writable, results_console, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.checks.verify.findings import FolderCheck

HELP = "replay a run's actions and compute its scores again"
PLACES = "run folders, folders of runs, or archives of them (.zip, .tar.gz)"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "folders FOLDER", PLACES, nargs="+")
    argument(
        parser,
        "--max-findings N",
        "number of shown findings of one kind (default: 5; --json has all)",
        default=5,
    )
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.checks.verify.table import print_verdict

    require_writable("--json", args.json)
    at_least(0, max_findings=args.max_findings)
    console = results_console(args)
    verdicts, status = [], 0
    with locate_runs(args.folders) as (runs, problems):
        if problems and not runs and len(problems) == 1:
            raise UserError(problems[0])
        for problem in problems:
            note(problem)
            status = 2
        for name, folder in runs.items():
            try:
                verdict = replay_run(args, name, folder)
            except UserError as error:
                if len(runs) == 1 and not problems:
                    raise
                note(f"{name} cannot be verified: {error}")
                status = 2
                continue
            verdicts.append(verdict)
            print_verdict(console, verdict, most=args.max_findings)
            status = max(status, 1 if verdict.findings else 3 if verdict.failures else 0)
    write_json(args.json, {"schema": 1, "runs": [verdict.to_json() for verdict in verdicts]})
    return status


@contextmanager
def locate_runs(places: Sequence[Path]) -> Iterator[tuple[Mapping[Path, Path], Sequence[str]]]:
    """Yield two results: name -> folder of each run at the given places, and an error for each place without runs.
    Archives in a given folder are also searched; their files stay unpacked while the context is open."""
    from evalharness.runs.find_runs import archives_in, find_runs

    runs: dict[Path, Path] = {}
    problems = []
    with TemporaryDirectory(prefix="evalharness-") as scratch:
        for place in places:
            packed = archives_in(place)
            for one in (place, *packed):
                try:
                    runs |= find_runs(one, Path(scratch))
                except UserError as error:
                    if one is not place or not packed:
                        problems.append(str(error))
        yield runs, problems


def replay_run(args: argparse.Namespace, name: Path, folder: Path) -> FolderCheck:
    """Replay a run; raise UserError if that fails. Messages show `name`, because `folder` may be temporary."""
    from evalharness.checks.verify import verify
    from evalharness.runs.live import watch

    try:
        verdict = verify(folder, data=data_folder(args), watch=watch)
    except UserError as error:
        raise UserError(str(error).replace(str(folder), str(name))) from None
    return replace(verdict, folder=name)
