"""`evalharness run --model human:NAME+list` in a terminal: a line can be completed, and an earlier one brought back."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

from command_line import command


def test_tab_completes_an_action_and_the_arrow_key_brings_it_back(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Facing north, the goal is south: two turns to the right."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command(
            "run",
            "--model",
            "human:ann+list",
            "--suite",
            "open",
            "--tasks",
            "compass/open/002",
            "-o",
            tmp_path / "r",
        ),
        env={**environment, "TERM": "xterm", "INPUTRC": os.devnull},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = ""

    def until(text: str) -> None:
        nonlocal shown
        while text not in shown:
            shown += os.read(master, 65536).decode()

    until("[1] > ")
    os.write(master, b"turn r\t")
    until("turn right")
    os.write(master, b"\r")
    until("[2] > ")
    os.write(master, b"\x1b[A\r")
    until(": solved, progress 100 %, 2 turns")
    until("run folder")
    assert process.wait(60) == 0
    os.close(master)
