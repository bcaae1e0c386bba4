"""Replay transcripts recorded from the original environments, or games of other groups' protocols, and compare.

Exit status 0: everything matches or is excepted with a reason, 1: something differs, 2: a file cannot be used.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from evalharness.base.errors import UserError, at_least, nearest
from evalharness.base.terminal import say
from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import results_console, write_json
from evalharness.cli.parser import argument
from evalharness.envs import specs
from evalharness.protocols.importer import importable
from tests.conform.protocol_runs import conform_protocol
from tests.conform.replay import conform, families_of
from tests.conform.rules import load_tolerances
from tests.conform.show import show, show_protocols
from tests.conform.transcripts import Transcript, read_transcripts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conform", description=__doc__)
    argument(
        parser, "files FILE.jsonl", "recorded transcripts; with --protocol a folder", nargs="+", type=Path
    )
    argument(parser, "--family NAME", "only this family's transcripts")
    argument(parser, "--exceptions FILE", "further exceptions (YAML, see docs/verify.md)")
    argument(parser, "--max-differences N", "show so many differences", default=5)
    argument(parser, "--workers N", "processes (default: one a core)", default=os.cpu_count() or 1)
    argument(
        parser, "--protocol NAME", "games of this protocol (without NAME: of all)", nargs="?", const="all"
    )
    argument(parser, "--no-worlds", "of a protocol only messages, actions and validity: seconds")
    add_data_option(parser)
    add_json_option(parser)
    args = parser.parse_args(arguments)
    try:
        return _environments(args) if args.protocol is None else _protocols(args)
    except UserError as error:
        say(f"conform: {error}")
        return 2


def _environments(args: argparse.Namespace) -> int:
    at_least(1, workers=args.workers)
    tolerances = load_tolerances(args.exceptions)
    console = results_console(args)
    by_family = families_of(_read(args.files, console), tolerances)
    if args.family is not None:
        if args.family not in by_family:
            raise UserError(f"no transcript of {args.family!r}; there are: {', '.join(by_family)}")
        by_family = {args.family: by_family[args.family]}
    results = {
        family: asyncio.run(
            conform(specs()[family], tolerances[family], transcripts, data_folder(args), workers=args.workers)
        )
        for family, transcripts in by_family.items()
    }
    show(console, results, tolerances, max_differences=args.max_differences)
    ok = all(result.ok for result in results.values())
    families = {family: result.to_json() for family, result in results.items()}
    write_json(args.json, {"schema": 1, "ok": ok, "families": families})
    return 0 if ok else 1


def _read(files: list[Path], console: Console) -> list[Transcript]:
    by_file = {file: read_transcripts(file) for file in files}
    empty = ", ".join(file.name for file, transcripts in by_file.items() if not transcripts)
    if not any(by_file.values()):
        raise UserError(f"no transcripts in {empty}: no line has steps")
    if empty:
        console.print(f"no transcripts, left out: {empty}", style="dim")
    return [transcript for transcripts in by_file.values() for transcript in transcripts]


def _protocols(args: argparse.Namespace) -> int:
    names = sorted(importable())
    if args.protocol != "all" and args.protocol not in names:
        raise UserError(f"--protocol {args.protocol}: no such protocol{nearest(args.protocol, names)}")
    if len(args.files) > 1:
        raise UserError("with --protocol give one folder of recorded games")
    data = None if args.no_worlds else data_folder(args)
    results = {
        name: conform_protocol(name, args.files[0], data)
        for name in (names if args.protocol == "all" else [args.protocol])
    }
    show_protocols(results_console(args), results, max_differences=args.max_differences)
    ok = all(result.ok for result in results.values())
    protocols = {name: result.to_json() for name, result in results.items()}
    write_json(args.json, {"schema": 1, "ok": ok, "protocols": protocols})
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
