"""Run the program of `--agent-command` in a process for each episode. Child processes are stopped with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.text import printable
from evalharness.models.serving.supervisor import SupervisedProcess

URL, TOKEN = "EVALHARNESS_AGENT_URL", "EVALHARNESS_AGENT_TOKEN"
"""Environment variables with the server's address and the token."""
MOST_OUTPUT = 64 << 10
"""Number of bytes of a process's output that are kept for the log: the last ones."""
MOST_LOG = 16 << 20
"""Size of the log in bytes from which only the exit status of each process is logged."""
_OWN_END_S = 5.0
"""Seconds to wait after an episode for its process to exit, before it gets SIGTERM."""
_GRACE_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""


def split_command(text: str) -> list[str]:
    """Split the command into words. Raises UserError if it cannot be started."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--agent-command {text!r}: {error}") from None
    if not words:
        raise UserError("--agent-command is empty: give a command, such as 'python my_agent.py'")
    if shutil.which(words[0]) is None:
        raise UserError(f"--agent-command: there is no program {words[0]!r} on the PATH")
    return words


def _append_log(path: Path, about: str, output: bytes, lost: int) -> None:
    """Append one process's output to the log."""
    note = f", its first {lost} bytes are left out" if lost else ""
    if path.exists() and path.stat().st_size > MOST_LOG:
        output, note = b"", ", what it printed is left out: this log is full"
    # Output of a stranger's program must not control the terminal of the log's reader.
    lines = output.decode(errors="backslashreplace").splitlines()
    with path.open("a", encoding="utf-8") as log:
        log.writelines(f"{line}\n" for line in (f"== {about}{note}", *map(printable, lines)))


def _kill_holders(token: str) -> None:
    """Kill processes of an episode that escaped their supervisor. The token in their environment identifies them."""
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(TOKEN) == token:
                process.kill()


class AgentProcess:
    """The agent's process for one episode. Make it with `start`."""

    def __init__(
        self, about: str, log: Path, process: SupervisedProcess, reading: BinaryIO, token: str
    ) -> None:
        self._about, self._log, self._process, self._token = about, log, process, token
        self._kept, self._lost = bytearray(), 0
        self._output = asyncio.create_task(self._read(reading))

    @classmethod
    async def start(
        cls, command: Sequence[str], about: str, log: Path, *, url: str, token: str
    ) -> AgentProcess:
        """Start the process. When it has ended, its output is appended to `log`. Raises InfrastructureError."""
        with contextlib.ExitStack() as undo:  # cleans up if a later step fails
            try:
                scratch = Path(tempfile.mkdtemp(prefix="evalharness-agent-"))
                undo.callback(shutil.rmtree, scratch, ignore_errors=True)
                reading, writing = os.pipe()
            except OSError as error:
                raise InfrastructureError(f"the agent's process cannot be started: {error}") from error
            output = undo.enter_context(os.fdopen(reading, "rb", buffering=0))
            process = await SupervisedProcess.start(
                command,
                env={**os.environ, URL: url, TOKEN: token, "PYTHONUNBUFFERED": "1"},
                log=os.fdopen(writing, "wb", buffering=0),
                scratch=scratch,
                grace=_GRACE_S,
            )
            undo.pop_all()
        process.at_work()  # give the process time after SIGTERM to write its results
        return cls(about, log, process, output, token)

    async def wait(self) -> int:
        """Wait until the process has ended by itself; return its exit status."""
        return await self._process.wait()

    @property
    def last_words(self) -> str:
        """The last line of the process's output, for an error message."""
        lines = bytes(self._kept).decode(errors="backslashreplace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")
        return printable(last)[:300]

    async def end(self) -> None:
        """End the process with its child processes."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _OWN_END_S)
        await self._process.stop()
        if not (await asyncio.wait({self._output}, timeout=_GRACE_S))[0]:
            _kill_holders(self._token)
            await asyncio.wait({self._output}, timeout=_GRACE_S)
        self._output.cancel()  # a process that keeps the pipe open must not block the run
        about = f"{self._about}: exit status {self._process.returncode}"
        _append_log(self._log, about, bytes(self._kept), self._lost)

    async def _read(self, output: BinaryIO) -> None:
        reader = asyncio.StreamReader(limit=MOST_OUTPUT)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), output
        )
        try:
            while chunk := await reader.read(1 << 16):
                self._kept += chunk
                if (too_much := len(self._kept) - MOST_OUTPUT) > 0:
                    del self._kept[:too_much]
                    self._lost += too_much
        finally:
            transport.close()
