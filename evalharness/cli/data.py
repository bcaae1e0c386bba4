"""Manage the published AgentBoard data (you supply it; every file is checked), and show the harness's own open suites,
prompts, perturbations, protocols and agents.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError, nearest
from evalharness.base.text import printable
from evalharness.cli import agents, perturb, prompts, protocol
from evalharness.cli import suite as suites
from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import make_console, results_console, say, write_json, write_text
from evalharness.cli.parser import CommandParser, Run, add_command, argument, subcommand

if TYPE_CHECKING:
    from evalharness.data import FamilyCheck, PublishedFamily
    from evalharness.data.importer import FamilyImport

_BELOW = {
    "suite": suites,
    "prompts": prompts,
    "perturbations": perturb,
    "protocols": protocol,
    "agents": agents,
}
STYLES = {"complete": "green", "changed": "red", "partial": "yellow", "absent": "dim"}


HELP = "manage published data, suites, prompts, perturbations, protocols, agents"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def action(name: str, run: Run, help: str) -> CommandParser:
        added = subcommand(actions, name, run, help)
        added.description = added.description or help
        add_data_option(added)
        return added

    bring = action("import", _import, "import from your folder or archive")
    argument(
        bring,
        "source [FAMILY] DIR|FILE",
        "folder with the published files, or an archive of them; FAMILY FILE: data for a family's importer (hotpotqa)",
        nargs="*",
    )
    argument(
        bring,
        "--alfworld DIR",
        "ALFWorld's own games, from the folder of alfworld-download (default: $ALFWORLD_DATA)",
        dest="family_folder",
        action=_FamilyFolder,
        nargs="?",
    )
    argument(bring, "--link", "make symbolic links into DIR instead of copies")
    fetch = action("fetch", _fetch, "download the official archives and import them")
    verify = action(
        "verify", _verify, "check every file by its SHA-256 and every family by its number of tasks"
    )
    for added in (fetch, verify):
        argument(added, "families FAMILY", "only these families (default: all)", nargs="*")
    status = action("status", _status, "show which data is imported, and how to get the rest")
    for added in (bring, fetch, verify, status):
        add_json_option(added)
    action("path", _path, "print the data folder")
    for name, module in _BELOW.items():
        add_command(actions, name, module)


class _FamilyFolder(argparse.Action):
    """Stores `--FAMILY DIR` as (family, folder)."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        setattr(namespace, self.dest, ((option or "").lstrip("-"), values))


def _path(args: argparse.Namespace) -> int:
    write_text("", "-", f"{data_folder(args)}\n")
    return 0


def _import(args: argparse.Namespace) -> int:
    """Import from a folder (a data folder of evalharness, the unpacked official archive, an AgentBoard checkout) or
    from an archive (.tar.gz, .zip). The exit status is 1 if a file differs from the published file."""
    from evalharness.data import published
    from evalharness.data.importer import import_published

    if args.family_folder is not None:
        family, folder = args.family_folder
        variable = f"{family.upper()}_DATA"
        folder = folder or os.environ.get(variable)
        if args.source or not folder:
            raise UserError(
                f"--{family} needs a folder (--{family} DIR, or {variable}=DIR) and no other source"
            )
        return _import_of_a_family(args, family, folder)
    if not args.source:
        raise UserError("give a folder or an archive with the published files")
    if len(args.source) > 2:
        raise UserError("give one folder or archive, or a family and a file of its published data")
    if len(args.source) == 2:
        return _import_of_a_family(args, *args.source)
    return _report_import(
        args, import_published(Path(args.source[0]), data_folder(args), published(), link=args.link)
    )


def _import_of_a_family(args: argparse.Namespace, family: str, source: str) -> int:
    """Import data with the importer of the family."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from evalharness.data.importer import lock_import
    from evalharness.envs import specs
    from evalharness.envs.base import ImportRefusedError

    importers = {
        name: spec.own.import_data for name, spec in specs().items() if spec.own.import_data is not None
    }
    if family not in importers:
        raise UserError(f"{family!r} has no importer of its own{nearest(family, sorted(importers))}")
    if args.link:
        raise UserError(f"--link is for the published files; the import of {family} converts {source}")
    folder = data_folder(args)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_import(folder), Progress(*columns, console=make_console(stderr=True)) as bars:
            task = bars.add_task(family, total=None)
            done = importers[family](
                Path(source).expanduser(),
                folder,
                lambda what, done, of: bars.update(task, description=what, completed=done, total=of),
            )
    except ImportRefusedError as error:
        raise UserError(printable(str(error), single_line=True)) from error
    except OSError as error:
        raise UserError(
            f"the import into {folder} stopped: {error}; fix this and run the same command again"
        ) from error
    if args.json != "-":
        for line in done:
            say(line, stderr=False)
    write_json(args.json, {"schema": 1, "data": str(folder), "family": family, "done": list(done)})
    return 0


def _fetch(args: argparse.Namespace) -> int:
    """Download the data of the named families from the publishers and import it. Some games are only in an archive of
    1.4 GB. Run the same command again to continue. HF_ENDPOINT names a mirror of huggingface.co. The exit status is 1
    if a file differs from the published file."""
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
    with Progress(*columns, console=make_console(stderr=True)) as bars:
        tasks: dict[str, Any] = {}

        def progress(download: Download, done: int, total: int | None) -> None:
            if download.url not in tasks:
                tasks[download.url] = bars.add_task(download.save_as, total=total)
            bars.update(tasks[download.url], completed=done, total=total)

        results = fetch_published(chosen, data_folder(args), progress=progress)
    return _report_import(args, results)


def _report_import(args: argparse.Namespace, results: Mapping[str, FamilyImport]) -> int:
    checks = {name: result.check for name, result in results.items()}
    _report(args, checks, {name: result.imported for name, result in results.items()})
    return 1 if any(check.changed for check in checks.values()) else 0


def _check(args: argparse.Namespace, families: Mapping[str, PublishedFamily]) -> bool:
    """Report the families' data; return whether every file is there and unchanged."""
    from evalharness.data import check

    checks = {name: check(family, data_folder(args)) for name, family in families.items()}
    _report(args, checks)
    return all(each.ok for each in checks.values())


def _verify(args: argparse.Namespace) -> int:
    """Check every file by its SHA-256 and every family by its number of tasks. The exit status is 1 if a file is
    missing or differs."""
    from evalharness.data import published
    from evalharness.data.importer import require_known

    return 0 if _check(args, require_known(args.families, published())) else 1


def _status(args: argparse.Namespace) -> int:
    from evalharness.data import published

    _check(args, published())
    _print_own_suites(args)
    return 0


def _print_own_suites(args: argparse.Namespace) -> None:
    """Print the number of tasks of families with their own importer; no published hashes exist for their files."""
    from evalharness.base.terminal import line
    from evalharness.envs import specs
    from evalharness.envs.base import MissingDataError

    console = results_console(args)
    for family, spec in sorted(specs().items()):
        for suite in sorted(spec.suites.expected) if spec.own.import_data is not None else ():
            if suite in ("open", "agentboard", "unwrapped"):
                continue
            try:
                count = len(spec.suites.load_tasks(suite, data_folder(args), 0))
                there = f"{count:,} of {spec.suites.expected[suite]:,} tasks"
            except (MissingDataError, OSError) as error:
                there = str(error)
            console.print(line(f"{family}, suite {suite}: {there}"), soft_wrap=True)


def _report(
    args: argparse.Namespace, checks: Mapping[str, FamilyCheck], imported: Mapping[str, int] | None = None
) -> None:
    """Print the checks as a table and write them as JSON. `imported`: family -> number of imported files."""
    from rich.table import Column
    from rich.text import Text

    from evalharness.base.terminal import plain_table, words
    from evalharness.data.source import display

    families = {
        name: check.to_json() | ({} if imported is None else {"imported": imported[name]})
        for name, check in checks.items()
    }
    ok = all(check.ok for check in checks.values())
    write_json(args.json, {"schema": 1, "data": str(data_folder(args)), "ok": ok, "families": families})
    console = results_console(args)
    columns = ("tasks", "files", "imported") if imported is not None else ("tasks", "files")
    table = plain_table("family", Column("state", no_wrap=True), *columns, words("note"), gap=2)
    for name, check in checks.items():
        counts = [f"{check.tasks or 0}/{check.expected_tasks}", f"{check.files}/{check.expected_files}"]
        counts += [str(imported[name])] if imported is not None else []
        state = Text(check.state, style=STYLES[check.state])
        table.add_row(Text(name), state, *map(Text, counts), Text(_describe_problems(check)))
    console.print(table)
    lines = [f"data folder: {display(str(data_folder(args)))}"]
    if incomplete := [name for name, check in checks.items() if check.missing]:
        where = f" --data {display(str(args.data))}" if args.data else ""
        lines += [
            f"to get {', '.join(incomplete)}:",
            f"  evalharness data import DIR{where}    from a copy that you have",
            f"  evalharness data fetch {' '.join(incomplete)}{where}    from the publishers",
        ]
    console.print(Text("\n".join(lines)), soft_wrap=True)
    if any(check.changed for check in checks.values()):
        console.print(
            "Some files are not the published ones: scores with them are not comparable.",
            style="red",
            soft_wrap=True,
        )


def _describe_problems(check: FamilyCheck) -> str:
    notes = [f"changed: {_abbreviate(check.changed)}"] if check.changed else []
    notes += [f"missing: {_abbreviate(check.missing)}"] if check.missing and check.state != "absent" else []
    notes += [f"no hash known for: {_abbreviate(check.unverified)}"] if check.unverified else []
    return "; ".join(notes)


def _abbreviate(names: tuple[str, ...]) -> str:
    first = ", ".join(names[:3])
    return f"{first} and {len(names) - 3} more" if len(names) > 3 else first
