"""The one rule of trying again: how often where infrastructure fails, and when going on is no use for anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from evalharness.base.errors import InfrastructureError
from evalharness.models.base import PolicyError
from evalharness.models.completion import RequestRefusedError
from evalharness.records.lines import StoreError

T = TypeVar("T")
K = TypeVar("K")


class AbortedError(InfrastructureError):
    """Going on would only burn the tries of everything that is left."""


@dataclass
class Tries(Generic[K]):
    """Of many things that are done at once, each named by a key."""

    attempts: int
    """Of one thing."""
    on_failure: Callable[[K, int, InfrastructureError, bool], None]
    """(key, attempt from 1, error, whether the thing is given up): every failed try."""
    model_gone: Callable[[], str | None] = lambda: None
    """Why the model can never answer again; None while it can."""
    at_once: Callable[[], int] = lambda: 1
    """How many things are done at once: as many may fail together for one cause."""
    _unanswered: int = 0
    """Failures in a row because the model gave no reply."""

    def note_answer(self) -> None:
        """The model answers."""
        self._unanswered = 0

    async def of(
        self,
        key: K,
        once: Callable[[], Awaitable[T]],
        hopeless: Callable[[InfrastructureError], str | None] = lambda error: None,
    ) -> T | None:
        """What `once` gives, tried again where infrastructure fails; None where it was given up. `hopeless` says why no
        other thing could be done either.

        Raises AbortedError where nothing can be done any more, StoreError when the disk refuses.
        """
        for attempt in range(1, self.attempts + 1):
            try:
                result = await once()
            except (StoreError, AbortedError):
                raise
            except RequestRefusedError as error:
                if error.refuses_all:
                    raise AbortedError(str(error)) from None
                raise
            except InfrastructureError as error:
                reason = self.model_gone() or hopeless(error)
                self.on_failure(key, attempt, error, attempt == self.attempts or reason is not None)
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
        self._unanswered += 1
        if self._unanswered >= max(self.attempts, self.at_once()):
            return f"the model's server gives no usable answers any more: {error}"
        return None
