"""Retry failed jobs and requests within limits; stop all jobs if the model can no longer answer."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evalharness.base.errors import InfrastructureError
from evalharness.models.base import PolicyError
from evalharness.models.completion import RequestFaultError, RequestRefusedError, TryFailedError
from evalharness.records.lines import StoreError

T = TypeVar("T")
K = TypeVar("K")


class AbortedError(InfrastructureError):
    """All remaining jobs would fail, so the command stops."""


@dataclass
class Tries(Generic[K]):
    """Retries concurrent jobs, each with a key, and stops all jobs if the model's server no longer answers."""

    tries: int
    """Number of tries for one job."""
    on_failure: Callable[[K, int, InfrastructureError, bool], None]
    """Called after every failed try of a job: (its key, number of the try from 1, error, whether it is given up)."""
    model_gone: Callable[[], str | None] = lambda: None
    """Return why the model can never answer again; None while it can."""
    at_once: Callable[[], int] = lambda: 1
    """Return the number of concurrent jobs. One cause can fail them all, so fewer failures do not stop the command."""
    replies: Callable[[], int] = lambda: 0
    """Return how many requests the model has answered so far, if a job sends many requests."""
    _unanswered: int = 0
    """Number of failures without a usable reply (`PolicyError`) since the model's last answer."""
    _replies_then: int = 0
    """Value of `replies` at the last such failure."""

    def note_answer(self) -> None:
        """Note that the model has answered."""
        self._unanswered = 0

    async def of(
        self,
        key: K,
        once: Callable[[], Awaitable[T]],
        hopeless: Callable[[InfrastructureError], str | None] = lambda error: None,
    ) -> T | None:
        """Call `once`, and repeat the call if infrastructure fails. Return the result; None if the job was given up.
        `hopeless` returns the reason if an error means that all other jobs would fail, too.

        Raises AbortedError if all other jobs would fail, StoreError if the disk refuses a write.
        """
        for number in range(1, self.tries + 1):
            try:
                result = await once()
            except (StoreError, AbortedError):
                raise
            except RequestRefusedError as error:
                if error.refuses_all:
                    raise AbortedError(str(error)) from None
                if not (isinstance(error, RequestFaultError) and self.replies()):
                    raise
                # Only this conversation is refused (by a content filter); others continue.
                self.on_failure(key, number, InfrastructureError(str(error)), True)
                return None
            except InfrastructureError as error:
                reason = self.model_gone() or hopeless(error)
                self.on_failure(key, number, error, number == self.tries or reason is not None)
                if reason := reason or self._why_abort(error):
                    raise AbortedError(reason) from None
            else:
                self.note_answer()
                return result
        return None

    def _why_abort(self, error: InfrastructureError) -> str | None:
        if not isinstance(error, PolicyError):
            return None
        if error.refuses_all:
            return f"the model's server refuses every request: {error}"
        if (replies := self.replies()) != self._replies_then:
            self._replies_then, self._unanswered = replies, 0
        self._unanswered += 1
        if self._unanswered >= max(self.tries, self.at_once()):
            return f"the model's server gives no usable answers any more: {error}"
        return None


_BACKOFF = 0.5
"""Seconds before the second try; doubled for each further try, with jitter."""
_BACKOFF_LIMIT = 30.0
_TELL_EVERY = 5.0
"""Seconds between two lines about the same failure: hundreds of requests may be refused each second."""


def pause_before_retry(failure: TryFailedError, earlier: int) -> float:
    """Return the seconds to wait, with jitter: hundreds of episodes that failed together do not retry together."""
    if failure.retry_after is not None:
        return failure.retry_after + random.uniform(0.0, min(1.0, 0.25 * failure.retry_after))
    return min(_BACKOFF * 2.0 ** min(earlier, 16), _BACKOFF_LIMIT) * random.uniform(0.5, 1.5)


@dataclass
class RetryPolicy:
    """Measures how long a server has answered no request. All requests to a server share one instance."""

    limit_s: float
    """Seconds for which a server may refuse every request as too busy. A reply may take this long; a used-up quota
    gives the same refusals."""
    tell: Callable[[str], None] = lambda text: None
    """Called with one line while requests fail, and with '' after an answer."""
    clock: Callable[[], float] = time.monotonic
    _failing_since: float | None = None
    _reported: float | None = None

    def note_answer(self) -> None:
        self._failing_since = None
        if self._reported is not None:
            self._reported = None
            self.tell("")

    def note_failure(self) -> None:
        if self._failing_since is None:
            self._failing_since = self.clock()

    def note_retry(self, url: str, failure: TryFailedError, pause: float) -> None:
        """Report that a failed request is repeated in `pause` seconds."""
        now = self.clock()
        if self._reported is None or now - self._reported >= _TELL_EVERY:
            self._reported = now
            began = now if self._failing_since is None else self._failing_since
            since = f"no answer for {now - began:.0f} s"
            until = f", given up after {self.limit_s:.0f} s" if failure.kind == "busy" else ""
            self.tell(f"{url}: {failure}; asked again in {pause:.0f} s ({since}{until})")

    @property
    def is_spent(self) -> bool:
        return self._failing_since is not None and self.clock() - self._failing_since > self.limit_s
