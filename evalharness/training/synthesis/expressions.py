"""Regular expressions that a model wrote: untrusted, so each use of one has a time limit.

The standard library's `re` cannot be stopped: `(a|aa)+b` against 60 letters outlives any patience, and it holds the
interpreter meanwhile. `regex` reads the same syntax, takes a limit, and lets other threads go on.
"""

from __future__ import annotations

import functools

import regex

TIME_LIMIT = 2.0
"""Seconds of one match. The expressions of our example scripts take microseconds; the rest is for a loaded
machine: with 0.1 s, one of 300 good scripts was refused there."""
LONGEST_EXPRESSION = 20_000
"""Characters, with the values of its parameters written out."""
LONGEST_TEXT = 2_000
"""Characters. An action is a line; what is longer than this matches nothing."""


class ExpressionError(ValueError):
    """The expression cannot be used; the message says why."""


class TooSlowError(ExpressionError):
    """A match ran into the time limit."""


@functools.lru_cache(maxsize=4096)
def compiled(expression: str) -> regex.Pattern[str]:
    """Raises ExpressionError."""
    if len(expression) > LONGEST_EXPRESSION:
        raise ExpressionError(f"it has more than {LONGEST_EXPRESSION:,} characters")
    try:
        return regex.compile(expression)
    except (regex.error, RecursionError, OverflowError, MemoryError, ValueError) as error:
        raise ExpressionError(f"it does not compile: {str(error)[:120] or type(error).__name__}") from None


def full_match(expression: str, text: str) -> bool:
    """Whether all of `text` matches. Raises ExpressionError, TooSlowError among them."""
    pattern = compiled(expression)
    if len(text) > LONGEST_TEXT:
        return False
    try:
        return pattern.fullmatch(text, timeout=TIME_LIMIT, concurrent=True) is not None
    except TimeoutError:
        raise TooSlowError(
            f"it took more than {TIME_LIMIT} s over a text of {len(text)} characters"
        ) from None
    except (RecursionError, MemoryError) as error:
        raise ExpressionError(f"it cannot be matched: {type(error).__name__}") from None
