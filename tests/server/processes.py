"""Finding processes by a tag in their command line or environment."""

from __future__ import annotations

import time

import psutil


def tagged(tag: str) -> list[psutil.Process]:
    """Living processes (zombies have ended) that carry `tag` in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if any(tag in word for word in process.cmdline()) or tag in process.environ().get(
                "EVALHARNESS_TAG", ""
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def gone(tag: str, within: float = 60.0) -> bool:
    """Whether no process with `tag` is left, waiting up to `within` seconds for the last to end."""
    deadline = time.monotonic() + within
    while (left := tagged(tag)) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=max(0.1, deadline - time.monotonic()))
    return not tagged(tag)
