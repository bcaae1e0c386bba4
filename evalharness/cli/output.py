"""Print and write the results of commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import system_errors
from evalharness.base.redaction import redact

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, RenderableType

    from evalharness.models.many_requests import AskingResult
    from evalharness.results.figures.looks import Style


def say(text: str, *, stderr: bool = True) -> None:
    """Call `terminal.say`; the import of rich must not slow down `--help`."""
    from evalharness.base import terminal

    terminal.say(text, stderr=stderr)


def note(text: str) -> None:
    """Print a remark of a command on standard error."""
    say(f"evalharness: {text}")


def make_console(*, stderr: bool = False) -> Console:
    from evalharness.base import terminal

    return terminal.make_console(stderr=stderr)


def results_console(args: argparse.Namespace) -> Console:
    """Return the console for tables and text: standard error if JSON, CSV or LaTeX goes to standard output."""
    targets = [getattr(args, option, None) for option in ("json", "csv", "tasks_csv", "latex")]
    return make_console(stderr="-" in targets)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows with the same keys as CSV. Text that a spreadsheet would read as a formula gets an apostrophe."""
    import csv
    import io

    from evalharness.base.text import inert

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(rows[0].keys() if rows else [])
    for row in rows:
        writer.writerow([inert(value) for value in row.values()])
    return buffer.getvalue()


def write_csv(target: str | None, rows: Sequence[Mapping[str, Any]]) -> None:
    if target is not None:
        write_text("--csv", target, csv_text(rows))


def write_json(target: str | None, value: Any) -> None:
    if target is None:
        return
    write_text("--json", target, json.dumps(value, indent=2) + "\n")


def require_writable(option: str, target: str | None) -> None:
    """Raise UserError if `write_text` cannot write `target`, so that no hours of work are lost. Leave no new file."""
    if target in (None, "-"):
        return
    path = Path(str(target))
    with system_errors(f"cannot write {option} {target}"):
        if path.exists() and not path.is_file() and not path.is_dir():
            return  # a device or a pipe: opening a pipe would wait for its reader
        new = not path.exists()
        path.open("ab").close()
        if new:
            path.unlink()


def write_text(option: str, target: str, text: str) -> None:
    from evalharness.base.text import printable

    if target == "-":
        # Write the text unchanged to a pipe or file; escape control characters on a terminal.
        sys.stdout.write(printable(text) if sys.stdout.isatty() else redact(text))
        return
    with system_errors(f"cannot write {option} {target}"):
        Path(target).write_text(redact(text), encoding="utf-8")


def write_picture(
    stem: Path, rows: Sequence[Mapping[str, Any]], figure: Figure, look: Style = "screen"
) -> None:
    """Write the numbers as `stem`.csv, and the figure in the formats of `look`. Call it within `looks.style(look)`."""
    from evalharness.results.figures.looks import save_figure

    with system_errors(f"cannot make {stem.parent}", "; choose another folder with -o DIR"):
        stem.parent.mkdir(parents=True, exist_ok=True)
    write_text("-o", str(stem.with_suffix(".csv")), csv_text(rows))
    written = save_figure(figure, stem, look)
    say(f"wrote {stem}{', '.join(path.suffix for path in written)}, .csv")


def show_outcome(args: argparse.Namespace, outcome: AskingResult, table: RenderableType, left: str) -> int:
    """Print and write the result of a command that asks a model; return the exit status. `left`: what follows the
    number of items left, such as `turns are left to judge`."""
    console = results_console(args)
    console.print(table)
    console.print(f"folder: {outcome.folder}", soft_wrap=True)
    write_json(args.json, outcome.summary)
    if outcome.summary["left"]:
        note(f"{outcome.summary['left']} {left}; the same command continues")
    if outcome.stopped:
        note(f"stopped early: {outcome.stopped}")
    return outcome.exit_status
