"""What the training says to whoever started it, and hears from them.

Run by the training environment's Python; needs nothing of this package.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

NOT_FINITE, NO_MEMORY = 7, 8
"""Exit statuses: the loss or a gradient was no number any more; memory did not suffice, as far as the libraries say
so."""


def say(event: str, **values: Any) -> None:
    print("@tune " + json.dumps({"event": event, **values}), flush=True)


class NotFiniteError(Exception):
    """The loss or a gradient is no number."""


class Wish:
    """Whether somebody still wants the training."""

    def __init__(self) -> None:
        self.stop = False

    def listen(self) -> None:
        # A cluster that wants its machine back sends it.
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop", True))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                self.stop = True
        os._exit(3)
