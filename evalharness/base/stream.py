"""Run a tool (pip, uv, a converter) and report its output line by line."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

STEP = "==> "
"""Marks an installer's own steps in the output of pip and uv."""
# Environment variables that would let pip or Python install packages elsewhere, or use packages from elsewhere.
UNWANTED = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_DRY_RUN",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
)


_KEPT = 200
"""Number of last lines of output that are kept."""


class ToolError(Exception):
    """The tool ended with an error; `output` has its last lines."""

    def __init__(self, argv: Sequence[str | Path], returncode: int, output: list[str]) -> None:
        super().__init__(f"{Path(argv[0]).name} ended with status {returncode}")
        self.returncode = returncode
        self.output = output

    @property
    def reason(self) -> str:
        """The last line that mentions an error, otherwise the last line."""
        lines = [line for line in self.output if "error" in line.lower()] or self.output
        return lines[-1].strip() if lines else str(self)


def run_streaming(argv: Sequence[str | Path], on_line: Callable[[str], None]) -> list[str]:
    """Run the tool to its end and return the last lines. Raises `ToolError`. An interrupt ends the tool."""
    env = {key: value for key, value in os.environ.items() if key not in UNWANTED}
    env |= {
        "PYTHONUNBUFFERED": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "NO_COLOR": "1",
        "TQDM_DISABLE": "1",
    }
    last: deque[str] = deque(maxlen=_KEPT)
    process = subprocess.Popen(
        [str(part) for part in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        text=True,
        errors="replace",
    )
    try:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                # A progress bar redraws its line after each carriage return: keep only its last state.
                text = line.rstrip().rpartition("\r")[2].rstrip()
                if text:
                    last.append(text)
                    on_line(text)
        returncode = process.wait()
    except BaseException:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    if returncode:
        raise ToolError(argv, returncode, list(last))
    return list(last)
