"""Run a training as a process and read its events. On the first Ctrl-C or SIGTERM, end it with a checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from evalharness.base.stream import UNWANTED

PREFIX = "@tune "
Event = dict[str, Any]

_VARIABLES = {
    "PYTHONUNBUFFERED": "1",
    # The training starts further Python processes, which must not import modules from the current folder.
    "PYTHONSAFEPATH": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "NO_COLOR": "1",
    # Make glibc keep freed blocks of memory. Getting large blocks again from the system took more than a third of a
    # training's processor time.
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(8 * 2**30),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}


def make_variables(own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a training. Values that the user has set in `own` take precedence."""
    user_values = {key: value for key, value in own.items() if key not in UNWANTED}
    return {**_VARIABLES, **user_values}


def follow(
    argv: Sequence[str | Path],
    log: Path,
    on_event: Callable[[Event], None],
    on_interrupt: Callable[[], None],
) -> int:
    """Run a training to its end and return its exit status. Write output lines that are no events to `log`.

    The first Ctrl-C or SIGTERM asks the training to end after the current step. The second ends the training at once
    and raises KeyboardInterrupt. If this process dies, the training ends, because its standard input is closed.
    """
    with (
        _interrupt_on_sigterm(),
        log.open("a", encoding="utf-8", errors="backslashreplace") as file,
    ):
        process = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=make_variables(os.environ),
            text=True,
            errors="replace",
            # Ctrl-C must reach only this process, which then asks the training to stop.
            start_new_session=True,
        )
        asked = False
        try:
            while True:
                try:
                    _pass_events(process, file, on_event)
                    return process.wait()
                except KeyboardInterrupt:
                    if asked:
                        raise
                    asked = True
                    on_interrupt()
                    assert process.stdin is not None
                    with contextlib.suppress(OSError):
                        process.stdin.write("stop\n")
                        process.stdin.flush()
        except BaseException:
            end(process)
            raise
        finally:
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert stream is not None
                    stream.close()


@contextlib.contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that the training saves a checkpoint before it ends."""
    if threading.current_thread() is not threading.main_thread():  # Python allows handlers only there
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _pass_events(process: subprocess.Popen[str], log: TextIO, on_event: Callable[[Event], None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        event = parse(line)
        if event is None:
            log.write(line.rpartition("\r")[2])
            log.flush()
        else:
            on_event(event)


def parse(line: str) -> Event | None:
    """Return the event in a line; None for other output."""
    if not line.startswith(PREFIX):
        return None
    try:
        event = json.loads(line.removeprefix(PREFIX))
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def end(process: subprocess.Popen[str]) -> None:
    """End the process and its child processes at once."""
    with contextlib.suppress(OSError):
        assert process.stdin is not None
        process.stdin.close()
    for kind, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
        if process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                process.terminate()
            else:
                os.killpg(process.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
