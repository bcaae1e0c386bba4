"""Doing something again and again beside the work that goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def every(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Call `act` from a thread of its own until the context closes, and never after that."""
    stop = threading.Event()

    def go() -> None:
        while not stop.wait(seconds):
            act()

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
