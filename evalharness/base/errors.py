"""The errors that users see, and one warning. Errors of tasks and missing data are in `evalharness.envs.base`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class EvalharnessError(Exception):
    """The base class of all errors that users see."""


class UserError(EvalharnessError):
    """An error that the user can fix; the message says what is wrong and how to fix it. The exit status is 2."""


class InfrastructureError(EvalharnessError):
    """A server, simulator or disk failed, or the run was stopped. A failed episode does not count for the model."""

    def details(self) -> dict[str, Any]:
        """Return further facts for `errors.jsonl` as JSON data."""
        return {}


class DamageWarning(UserWarning):
    """A run folder was changed or damaged, but the rest can be read."""


@contextmanager
def system_errors(what: str, then: str = "") -> Iterator[None]:
    """Turn an OSError into a UserError with the message `WHAT: the system's reasonTHEN`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {error.strerror or error}{then}") from None


def at_least(least: int, **options: float | None) -> None:
    """Raise UserError for an option below `least`; `per_task=2` is the option --per-task, `n=2` is -n."""
    for name, value in options.items():
        if value is not None and not value >= least:
            raise UserError(f"{'--' if len(name) > 1 else '-'}{name.replace('_', '-')} is at least {least}")


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of the group: the one that stopped the other tasks."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def close_to(word: str, known: list[str], cutoff: float = 0.6) -> str | None:
    """Return the word in `known` that is most similar to `word`, probably a typing error; None if none is similar."""
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=cutoff)), None)


def nearest(word: str, known: list[str]) -> str:
    """Return `; did you mean X?` if a known word is close, otherwise the list of known words."""
    if not known:
        return ""
    close = close_to(word, known, cutoff=0.5)
    return f"; did you mean {close!r}?" if close is not None else f"; there are: {', '.join(known)}"
