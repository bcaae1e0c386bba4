"""`evalharness data`: bring the published benchmark data in, check it, say where it is."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalharness.data import FamilyCheck, PublishedFamily
    from evalharness.data.importer import FamilyImport

STYLES = {"complete": "green", "changed": "red", "partial": "yellow", "absent": "dim"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "data",
        help="bring the published benchmark data in, check it by hash",
        description="The published AgentBoard data is supplied by you and checked file by file. "
        "The open suite needs none of it.",
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, help_text: str, **more: Any) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=help_text, description=more.get("description", help_text))
        added.add_argument(
            "--data",
            type=Path,
            metavar="DIR",
            help="data folder (default: EVALHARNESS_DATA, or the user's data folder)",
        )
        return added

    add = action(
        "import",
        "import from a folder or an archive that you have",
        description="Import from a folder (this layout, the unpacked official archive, an AgentBoard checkout) or from "
        "an archive (.tar.gz, .zip). Files are recognised by name and checked by hash; only benchmark files are read. "
        "Exit status 1 when a file is not the published one.",
    )
    add.add_argument("source", type=Path, metavar="DIR|FILE")
    add.add_argument("--link", action="store_true", help="make symbolic links into DIR instead of copies")
    add.add_argument("--json", metavar="FILE", help="write the result as JSON (- for standard output)")
    add.set_defaults(run=_import)

    get = action(
        "fetch",
        "download the official archives and import them",
        description="Download what the named families need (all of them by default) from the publishers and import it. "
        "A download that was cut off goes on where it stopped. ALFWorld's games are only in the 1.4 GB archive. "
        "HF_ENDPOINT names a mirror of huggingface.co. Exit status 1 when a file is not the published one.",
    )
    get.add_argument("families", nargs="*", metavar="FAMILY")
    get.add_argument("--json", metavar="FILE", help="write the result as JSON (- for standard output)")
    get.set_defaults(run=_fetch)

    verify = action(
        "verify",
        "check every file by its SHA-256 and every family by its number of tasks",
        description="Check every file by its SHA-256 and every family by its number of tasks. "
        "Exit status 1 when anything is missing or differs.",
    )
    verify.add_argument("families", nargs="*", metavar="FAMILY", help="default: all")
    verify.add_argument("--json", metavar="FILE", help="write the result as JSON (- for standard output)")
    verify.set_defaults(run=_verify)

    status = action("status", "say what is there, and the command that gets the rest")
    status.add_argument("--json", metavar="FILE", help="write the result as JSON (- for standard output)")
    status.set_defaults(run=_status)

    action("path", "print the data folder").set_defaults(run=_path)


def _folder(args: argparse.Namespace) -> Path:
    from evalharness.data import data_folder

    return args.data.expanduser() if args.data else data_folder()


def _path(args: argparse.Namespace) -> int:
    print(_folder(args))
    return 0


def _import(args: argparse.Namespace) -> int:
    from evalharness.data import published
    from evalharness.data.importer import import_published

    return _report_import(args, import_published(args.source, _folder(args), published(), link=args.link))


def _fetch(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from evalharness.data import published
    from evalharness.data.fetch import fetch_published
    from evalharness.data.importer import require_known
    from evalharness.data.table import Download

    chosen = require_known(args.families, published())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def progress(download: Download, done: int, total: int | None) -> None:
            if download.url not in tasks:
                tasks[download.url] = bars.add_task(download.save_as, total=total)
            bars.update(tasks[download.url], completed=done, total=total)

        results = fetch_published(chosen, _folder(args), progress=progress)
    return _report_import(args, results)


def _report_import(args: argparse.Namespace, results: Mapping[str, FamilyImport]) -> int:
    checks = {name: result.check for name, result in results.items()}
    _write_json(
        args.json,
        {
            "schema": 1,
            "data": str(_folder(args)),
            "families": {
                name: {"imported": result.imported, **result.check.to_json()}
                for name, result in results.items()
            },
        },
    )
    if args.json != "-":
        _print_checks(_folder(args), checks, {name: result.imported for name, result in results.items()})
    return 1 if any(check.changed for check in checks.values()) else 0


def _checks(args: argparse.Namespace, families: Mapping[str, PublishedFamily]) -> dict[str, FamilyCheck]:
    from evalharness.data import check

    checks = {name: check(family, _folder(args)) for name, family in families.items()}
    _write_json(
        args.json,
        {
            "schema": 1,
            "data": str(_folder(args)),
            "ok": all(found.ok for found in checks.values()),
            "families": {name: found.to_json() for name, found in checks.items()},
        },
    )
    if args.json != "-":
        _print_checks(_folder(args), checks)
    return checks


def _verify(args: argparse.Namespace) -> int:
    from evalharness.data import published
    from evalharness.data.importer import require_known

    checks = _checks(args, require_known(args.families, published()))
    return 0 if all(check.ok for check in checks.values()) else 1


def _status(args: argparse.Namespace) -> int:
    from evalharness.data import published

    _checks(args, published())
    return 0


def _write_json(target: str | None, content: object) -> None:
    from evalharness.cli.output import write_json

    if target:
        write_json(target, content)


def _print_checks(
    folder: Path, checks: Mapping[str, FamilyCheck], imported: Mapping[str, int] | None = None
) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from evalharness.data.source import display

    console = Console(highlight=False)
    table = Table(title=None)
    table.add_column("family")
    table.add_column("state")
    table.add_column("tasks", justify="right")
    table.add_column("files", justify="right")
    if imported is not None:
        table.add_column("imported", justify="right")
    table.add_column("differing")
    for name, found in checks.items():
        notes = [f"changed: {_some(found.changed)}"] if found.changed else []
        notes += [f"missing: {_some(found.missing)}"] if found.missing and found.state != "absent" else []
        notes += [f"no reference hash: {_some(found.unverified)}"] if found.unverified else []
        row = [name, f"[{STYLES[found.state]}]{found.state}", f"{found.tasks or 0}/{found.expected_tasks}"]
        row += [f"{found.files}/{found.expected_files}"]
        row += [str(imported[name])] if imported is not None else []
        table.add_row(*row, escape("; ".join(notes)))
    console.print(table)
    console.print(escape(f"data folder: {display(str(folder))}"), soft_wrap=True)
    absent = [name for name, found in checks.items() if found.state in ("absent", "partial")]
    if absent:
        console.print(
            escape(
                f"get {', '.join(absent)} with: evalharness data import DIR (or: evalharness data fetch {' '.join(absent)})"
            ),
            soft_wrap=True,
        )
    if any(found.changed for found in checks.values()):
        console.print(
            "[red]Some files are not the published ones: scores from them are not comparable.[/red]",
            soft_wrap=True,
        )


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
