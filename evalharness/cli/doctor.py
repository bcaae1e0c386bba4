"""Check Python, packages, Java, GPU, server and disk, and play one turn of each family. Name the command that fixes
each problem. Exit status 1 if a family has no playable suite.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evalharness.cli.common import add_data_option, add_json_option, data_folder
from evalharness.cli.output import results_console, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from evalharness.checks.doctor import FamilyProbe, Finding

STYLES = {"ok": "green", "gap": "red", "note": "yellow"}


HELP = "check this machine, and name the commands that fix problems"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from contextlib import nullcontext
    from dataclasses import asdict

    from evalharness.checks.doctor import machine_findings, probe_families

    data = data_folder(args)
    console = results_console(args)
    findings = list(machine_findings())
    console.print(_findings(findings))
    with console.status("playing one turn of each family") if console.is_terminal else nullcontext():
        probes = probe_families(data)
    console.print()
    for part in _families(probes):
        console.print(part)
    ok = bool(probes) and all(probe.ok for probe in probes)
    for line in _summary(findings, probes, ok):
        console.print(line, soft_wrap=True)
    write_json(
        args.json,
        {
            "schema": 1,
            "ok": ok,
            "data": str(data),
            "findings": [asdict(finding) for finding in findings],
            "families": [probe.to_json() for probe in probes],
        },
    )
    return 0 if ok else 1


def _findings(findings: Sequence[Finding]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        table.add_row(
            Text(finding.state, style=STYLES[finding.state]),
            Text(finding.name),
            Text(_remove_control_characters(finding.detail)),
        )
    return table


def _families(probes: Sequence[FamilyProbe]) -> Iterator[RenderableType]:
    """Yield a table with a row for each family, then each reason why a suite cannot be played."""
    from rich.padding import Padding
    from rich.table import Column
    from rich.text import Text

    from evalharness.base.terminal import plain_table, words

    plays = Column("plays (tasks)", overflow="fold", style="green")
    table = plain_table("family", plays, words("does not play"), gap=2)
    why: dict[str, list[str]] = {}
    for probe in probes:
        playing = [f"{suite.suite} ({suite.tasks})" for suite in probe.suites if suite.plays]
        others = [suite.suite for suite in probe.suites if not suite.plays]
        style = "yellow" if probe.ok else "red"
        table.add_row(probe.family, ", ".join(playing) or "-", Text(", ".join(others) or "-", style=style))
        for suite in probe.suites:
            if suite.problem:
                why.setdefault(_remove_control_characters(suite.problem), []).append(
                    f"{probe.family} {suite.suite}"
                )
    yield table
    for problem, where in why.items():
        yield Padding(Text(f"{', '.join(where)}: {problem}", style="yellow"), (0, 0, 0, 2))


def _summary(findings: Sequence[Finding], probes: Sequence[FamilyProbe], ok: bool) -> Iterator[Text]:
    """Yield the commands that fix the problems, and then whether every family can be played."""
    from rich.text import Text

    fixes: dict[str, list[str]] = {}
    for finding in findings:
        if finding.fix:
            fixes.setdefault(finding.fix, []).append(finding.name)
    for probe in probes:
        for suite in probe.suites:
            if suite.fix:
                fixes.setdefault(suite.fix, []).append(probe.family)
    if fixes:
        yield Text("\nto fix:", style="bold")
    for command, names in fixes.items():
        yield Text(f"  {command}    ").append(f"({', '.join(dict.fromkeys(names))})", style="dim")
    yield Text()
    if ok:
        yield Text("every family can be played", style="green")
    else:
        broken = [probe.family for probe in probes if not probe.ok]
        yield Text(f"cannot be played: {', '.join(broken) or 'no family is installed'}", style="red")


def _remove_control_characters(text: str) -> str:
    """Return one line without control characters, since details quote other programs' output."""
    return "".join(character if character.isprintable() else " " for character in text)[:300]
