"""The picture of the README: commands and what they print on a terminal, as SVG.

python benchmarks/picture.py docs/terminal.svg "evalharness show RUN" "evalharness show RUN TASK_ID"
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import pty
import struct
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 92
_FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
"""rich's own without the font that it loads from another host."""


def printed(command: str) -> str:
    """What `command` prints on a terminal of `COLUMNS` columns."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "PAGER": "cat", "COLUMNS": str(COLUMNS)}
        os.execvp("sh", ["sh", "-c", command])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    received = b""
    try:
        while part := os.read(terminal, 4096):
            received += part
    except OSError:  # Linux says the end in this way
        pass
    os.waitpid(child, 0)
    return received.decode().replace("\r\n", "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("commands", nargs="+")
    args = parser.parse_args()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    for number, command in enumerate(args.commands):
        if number:
            console.print()
        console.print(Text(f"$ {command}", style="bold cyan"))
        console.print(Text.from_ansi(printed(command).strip("\n")))
    console.save_svg(str(args.picture), title="evalharness", code_format=_FORMAT, unique_id="terminal")


if __name__ == "__main__":
    sys.exit(main())
