"""Long output on a terminal goes through the reader's own pager: `$PAGER`, else `less`."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress

from rich.console import Console, RenderableType

from evalharness.base.terminal import SafeConsole

_LESS = "FRX"
"""Ends where one screen is enough, shows colours, leaves the text on the screen; as git calls it."""


def print_paged(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print `parts`; on a terminal through the pager, one that is missing or empty (`PAGER=`) left out."""
    paged = console.is_terminal and not console.is_dumb_terminal and console.file is sys.stdout
    command = _pager() if paged else None
    if command is None:
        for part in parts:
            console.print(part)
        return
    buffer = io.StringIO()
    shown = SafeConsole(
        file=buffer,
        force_terminal=True,
        width=console.width,
        color_system=console.color_system or "auto",  # type: ignore[arg-type]
        no_color=console.no_color,
        markup=False,
        emoji=False,
    )
    for part in parts:
        shown.print(part)
    text = buffer.getvalue()
    try:
        pager = subprocess.Popen(
            command, stdin=subprocess.PIPE, env={"LESS": _LESS, **os.environ}, encoding="utf-8"
        )
    except OSError:
        console.file.write(text)
        return
    while True:
        try:
            with suppress(BrokenPipeError):  # the reader had enough
                pager.communicate(text)
            return
        except KeyboardInterrupt:  # Ctrl-C is the pager's, too: it ends what it is doing, not itself
            text = ""


def _pager() -> list[str] | None:
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return None
    return command or None
