"""Shows a long installation: one live line on a terminal, the milestones as plain lines elsewhere."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from evalharness.base.stream import STEP

_COLLECTING = re.compile(r"^Collecting (\S+)")
_DOWNLOADING = re.compile(r"^Downloading (\S+?)(?:-[\d.]+\S*)? \(([\d.]+) (kB|MB|GB|KiB|MiB|GiB)\)")
_INSTALLING = re.compile(r"^Installing collected packages: (.*)")
_INSTALLED = re.compile(r"^Successfully installed (.*)")
_UV = re.compile(r"^(Resolved|Prepared|Installed|Uninstalled) \d+ packages?")
_BIG_MB = 20.0


def condense(line: str) -> tuple[str, bool] | None:
    """What a line of the installation is worth: (text, whether it is a milestone); None for noise. Pure."""
    text = line.strip()
    if text.startswith(STEP):
        return text.removeprefix(STEP), True
    if found := _COLLECTING.match(text):
        return f"resolving {re.split('[=<>!~;[ ]', found.group(1))[0]}", False
    if found := _DOWNLOADING.match(text):
        unit = found.group(3)[0].upper()
        size = float(found.group(2)) * {"K": 0.001, "M": 1.0, "G": 1000.0}[unit]
        return f"downloading {found.group(1)} ({size:.0f} MB)", size >= _BIG_MB
    if found := _INSTALLING.match(text):
        return f"unpacking {len(found.group(1).split(','))} packages", True
    if found := _INSTALLED.match(text):
        return f"unpacked {len(found.group(1).split())} packages", False
    if _UV.match(text):
        return text[0].lower() + text[1:], True
    return None


@contextmanager
def install_progress(out: TextIO) -> Iterator[Callable[[str], None]]:
    """Gives what is to be called with every line of the installation."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from evalharness.base.terminal import console_for

    began, console = time.monotonic(), console_for(out)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    live = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = live.add_task("", total=None)

    def show(line: str) -> None:
        if (found := condense(line)) is None:
            return
        text, milestone = found
        if milestone:
            console.print(f"{time.monotonic() - began:5.0f} s  {text}", soft_wrap=True)
        live.update(task, description=text[: max(20, console.width - 16)])

    with live:
        yield show
