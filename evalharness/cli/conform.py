"""Replay recorded transcripts through our environments and compare goal, observations, progress, end, success and
validity step by step. Exit status 1 when anything differs but what is excepted with a reason.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import make_console, results_console, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.checks.conform.compare import FamilyResult
    from evalharness.checks.conform.transcripts import Transcript


HELP = "replay recorded transcripts of the original environments and compare"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "files FILE.jsonl", "recorded transcripts", nargs="+")
    argument(parser, "--family NAME", "only this family's transcripts")
    argument(parser, "--exceptions FILE", "further exceptions (YAML, see docs/conformance.md)")
    argument(
        parser,
        "--max-differences N",
        "show the first difference of this many transcripts of a family",
        default=5,
    )
    argument(parser, "--workers N", "processes (default: one a core)", default=os.cpu_count() or 1)
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    import asyncio

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from evalharness.checks.conform.replay import conform, families_of
    from evalharness.checks.conform.rules import load_tolerances
    from evalharness.envs import specs

    at_least(1, workers=args.workers)
    tolerances = load_tolerances(args.exceptions)
    console = results_console(args)
    by_family = families_of(_read(args.files, console), tolerances)
    if args.family is not None:
        if args.family not in by_family:
            raise UserError(f"no transcript of {args.family!r}; there are: {', '.join(by_family)}")
        by_family = {args.family: by_family[args.family]}
    results: dict[str, FamilyResult] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=make_console(stderr=True), transient=True) as bars:
        for family, transcripts in by_family.items():
            bar = bars.add_task(family, total=len(transcripts))
            results[family] = asyncio.run(
                conform(
                    specs()[family],
                    tolerances[family],
                    transcripts,
                    data_folder(args),
                    workers=args.workers,
                    progress=lambda bar=bar: bars.advance(bar),  # type: ignore[misc]
                )
            )
    from evalharness.checks.conform.show import show

    show(console, results, tolerances, max_differences=args.max_differences)
    ok = all(result.ok for result in results.values())
    write_json(
        args.json,
        {"schema": 1, "ok": ok, "families": {family: result.to_json() for family, result in results.items()}},
    )
    return 0 if ok else 1


def _read(files: list[Path], console: Console) -> list[Transcript]:
    from evalharness.checks.conform.transcripts import read_transcripts

    found: list[Transcript] = []
    skipped = []
    for file in files:
        transcripts = read_transcripts(file)
        found += transcripts
        if not transcripts:
            skipped.append(file.name)
    if not found:
        raise UserError(f"no transcripts in {', '.join(skipped)}: no line has steps")
    if skipped:
        console.print(f"no transcripts, left out: {', '.join(skipped)}", style="dim")
    return found
