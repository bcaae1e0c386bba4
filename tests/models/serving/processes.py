"""Finding the processes of a test."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

import psutil


def tagged(tag: str, *roles: str) -> list[psutil.Process]:
    """Living processes (zombies have ended) that carry `tag` in their command line.

    With `roles` only those whose command line ends with one of them.
    """

    def matches(process: psutil.Process) -> bool:
        words = process.cmdline()
        return any(tag in word for word in words) and (not roles or words[-1] in roles)

    return _living(matches)


def in_session(session: int) -> list[psutil.Process]:
    """Living processes of a session: a server's tree whatever its processes call themselves."""
    return _living(lambda process: os.getsid(process.pid) == session)


def serving(name: str) -> list[psutil.Process]:
    """Living processes of a vLLM that serves the model `name`, and what descends from them."""
    found: set[psutil.Process] = set()
    for process in _living(
        lambda process: name in process.cmdline() and "vllm" in " ".join(process.cmdline())
    ):
        with contextlib.suppress(psutil.Error):
            found |= {process, *process.children(recursive=True)}
    return list(found)


def gone(find: Callable[[], list[psutil.Process]], within: float = 60.0) -> bool:
    """Whether `find` finds nothing any more, waiting up to `within` seconds for the last to end."""
    deadline = time.monotonic() + within
    while (left := find()) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=max(0.1, deadline - time.monotonic()))
    return not find()


def _living(matches: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and matches(process):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found
