"""Shows a long installation: one live line on a terminal, the milestones as plain lines elsewhere."""

from __future__ import annotations

import re
import time
from types import TracebackType
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


class InstallProgress:
    """A context manager to be called with every line of the installation."""

    def __init__(self, out: TextIO) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        from evalharness.base.terminal import console_for

        self._began = time.monotonic()
        self._console = console_for(out)
        self._live: Progress | None = None
        if self._console.is_terminal:
            columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
            self._live = Progress(*columns, console=self._console, transient=True)
            self._task = self._live.add_task("", total=None)

    def __enter__(self) -> InstallProgress:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, line: str) -> None:
        found = condense(line)
        if found is None:
            return
        text, milestone = found
        if milestone:
            elapsed = time.monotonic() - self._began
            self._console.print(f"{elapsed:5.0f} s  {text}", soft_wrap=True)
        if self._live is not None:
            self._live.update(self._task, description=text[: max(20, self._console.width - 16)])
