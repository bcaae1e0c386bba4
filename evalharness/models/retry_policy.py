"""How long a server that gives no answer is asked again, and what is said meanwhile."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from evalharness.models.completion import TryFailedError

_BACKOFF = 0.5
"""Seconds before the second try; doubled for each further one, with jitter."""
_BACKOFF_LIMIT = 30.0
_TELL_EVERY = 5.0
"""Seconds between two lines on the same trouble: hundreds of requests may be refused each second."""


def pause_before_retry(failure: TryFailedError, earlier: int) -> float:
    """Seconds. Jitter: hundreds of episodes that failed together must not come back together."""
    if failure.retry_after is not None:
        return failure.retry_after + random.uniform(0.0, min(1.0, 0.25 * failure.retry_after))
    return min(_BACKOFF * 2.0 ** min(earlier, 16), _BACKOFF_LIMIT) * random.uniform(0.5, 1.5)


@dataclass
class RetryPolicy:
    """What all requests to one server share: for how long none of them was answered."""

    limit_s: float
    """So long a server may refuse every request for being too busy. It then has had the time that a reply may take, and
    a quota that is used up looks the same."""
    tell: Callable[[str], None] = lambda text: None
    """Gets one line while requests fail, and '' once one is answered."""
    clock: Callable[[], float] = time.monotonic
    _failing_since: float | None = None
    _told: float | None = None

    def answered(self) -> None:
        self._failing_since = None
        if self._told is not None:
            self._told = None
            self.tell("")

    def failed(self) -> None:
        if self._failing_since is None:
            self._failing_since = self.clock()

    def retried(self, url: str, failure: TryFailedError, pause: float) -> None:
        """A request that failed is asked again in `pause` seconds."""
        now = self.clock()
        if self._told is None or now - self._told >= _TELL_EVERY:
            self._told = now
            began = now if self._failing_since is None else self._failing_since
            since = f"no answer for {now - began:.0f} s"
            until = f", given up after {self.limit_s:.0f} s" if failure.kind == "busy" else ""
            self.tell(f"{url}: {failure}; asked again in {pause:.0f} s ({since}{until})")

    @property
    def is_spent(self) -> bool:
        return self._failing_since is not None and self.clock() - self._failing_since > self.limit_s
