"""Messages between the training and the process that started it.

This file runs in the training environment, so it imports nothing of this package.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

NOT_FINITE, NO_MEMORY = 7, 8
"""Exit statuses: the loss or a gradient became NaN or infinite; a library reported too little memory."""


def say(event: str, **values: Any) -> None:
    print("@tune " + json.dumps({"event": event, **values}), flush=True)


class NotFiniteError(Exception):
    """The loss or a gradient is NaN or infinite."""


class Wish:
    """Receives the request to stop the training, and sets `stop`."""

    def __init__(self) -> None:
        self.stop = False

    def listen(self) -> None:
        # A cluster sends SIGTERM before it ends the job.
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stop", True))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                self.stop = True
        os._exit(3)
