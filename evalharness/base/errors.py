"""The kinds of error that reach a person, and one warning. Those of tasks and missing data are in
`evalharness.envs.base`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class EvalharnessError(Exception):
    """The root of every error that is shown to a person: whoever catches this has them all."""


class UserError(EvalharnessError):
    """Something the person at the terminal can fix; the message says what and how. Exit status 2."""


class InfrastructureError(EvalharnessError):
    """A server, simulator or disk failed; never the model's fault."""

    def details(self) -> dict[str, Any]:
        """What `errors.jsonl` should say beyond the message, as JSON data."""
        return {}


class DamageWarning(UserWarning):
    """A run folder is not as it was written, and what is left of it can still be read."""


@contextmanager
def system_errors(what: str, then: str = "") -> Iterator[None]:
    """An OSError becomes a UserError: `WHAT: why the system refusedTHEN`."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{what}: {error.strerror or error}{then}") from None


def at_least(least: int, **options: float | None) -> None:
    """Raises UserError for an option, as `per_task=...`, that is given and smaller; of one letter, `n=...`."""
    for name, value in options.items():
        if value is not None and not value >= least:
            raise UserError(f"{'--' if len(name) > 1 else '-'}{name.replace('_', '-')} is at least {least}")


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first leaf: the error that made the others stop."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def close_to(word: str, known: list[str], cutoff: float = 0.6) -> str | None:
    """The one that a person who typed `word` will have meant; None where nothing is near enough to say so."""
    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=cutoff)), None)


def nearest(word: str, known: list[str]) -> str:
    """`; did you mean X?` for a near miss, else the list of what there is."""
    close = close_to(word, known, cutoff=0.5)
    return f"; did you mean {close!r}?" if close is not None else f"; there are: {', '.join(known)}"
