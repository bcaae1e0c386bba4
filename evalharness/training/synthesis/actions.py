"""Whether a text is one of a script's actions, by its expression and its lists of parameters. Pure.

The paper leaves the placeholder's syntax and "match" open. Here `{item}` and `<item>` both stand for a parameter, in
an action's name and in its expression; a parameter without a place in the name follows it, as in `open door`; and an
expression has to match all of an action.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import regex

from evalharness.training.synthesis.script import Action, Script

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


_PLACEHOLDER = re.compile(r"\{([^{}]+)\}|(?<!\\k)(?<!\\g)(?<!\(\?P)(?<!\(\?)<([^<>]+)>")
"""Not in front of `<name>` as regular expressions themselves use it: `(?P<name>...)`, `(?<name>...)`, `\\g<name>`."""
_MOST_OWN_TEXTS = 200
_ANY = "something"
"""Stands for the value of a parameter whose list is absent or empty, when an action is tried against itself."""


def _parts(text: str, parameters: Mapping[str, object]) -> list[tuple[str, bool]]:
    """`text` cut into (literal, False) and (parameter, True); a bracket around what is no parameter stays literal."""
    found: list[tuple[str, bool]] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        name = match[1] or match[2]
        if name in parameters:
            found += [(text[end : match.start()], False), (name, True)]
            end = match.end()
    found.append((text[end:], False))
    return [part for part in found if part[0] or part[1]]


def name_parts(name: str, action: Action) -> list[tuple[str, bool]]:
    """The action's name in literals and parameters; those without a place in it follow, a blank before each."""
    parts = _parts(name.strip(), action.parameters)
    placed = {text for text, is_parameter in parts if is_parameter}
    for parameter in action.parameters:
        if parameter not in placed:
            parts += [(" ", False), (parameter, True)]
    return parts


def own_texts(name: str, action: Action) -> list[str]:
    """Texts that the action has to accept: each value of each parameter at least once, up to a bound."""
    values = {parameter: listed or [_ANY] for parameter, listed in action.parameters.items()}
    parts = name_parts(name, action)
    count = min(max((len(listed) for listed in values.values()), default=1), _MOST_OWN_TEXTS)
    return [
        "".join(
            values[text][index % len(values[text])] if is_parameter else text for text, is_parameter in parts
        )
        for index in range(count)
    ]


def expression(action: Action) -> str:
    """The verification code with parameters in place of its placeholders."""
    return "".join(
        _alternatives(action.parameters[text]) if is_parameter else text
        for text, is_parameter in _parts(action.verification_code, action.parameters)
    )


def _alternatives(values: list[str] | None) -> str:
    return f"(?:{'|'.join(map(re.escape, values))})" if values else "(?:.+)"


@functools.lru_cache(maxsize=4096)
def _listed(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(values)


def has_listed_parameters(name: str, action: Action, text: str) -> bool:
    """Whether `text` is the action's name with values of its lists. Regular expressions are not used here, so that
    long lists are still checked quickly."""
    ends = {0}
    for part, is_parameter in name_parts(name, action):
        if not is_parameter:
            ends = {end + len(part) for end in ends if text.startswith(part, end)}
        elif values := action.parameters[part]:
            ends = {end + len(v) for end in ends for v in _listed(tuple(values)) if text.startswith(v, end)}
        else:  # unbounded: at least one character
            ends = set(range(min(ends) + 1, len(text) + 1)) if ends else set()
        if not ends:
            return False
    return len(text) in ends


def _is_bare(name: str, action: Action) -> bool:
    """Whether a name leaves all its parameters out."""
    return bool(action.parameters) and not any(placed for _, placed in _parts(name, action.parameters))


def _names_listed(action: Action, text: str) -> bool:
    """Whether `text` has a value of each list somewhere: all that can be said where the name places none."""
    return all(any(value in text for value in listed) for listed in action.parameters.values() if listed)


def action_mistakes(name: str, action: Action) -> list[str]:
    """What is wrong with an action's expression, as the model gets to read it; empty when nothing is.

    A name may leave its parameters out (`put` for `put (.+) in (.+)`), as in the paper, which checks names: where they
    stand is then not known, and the expression says what an action is.
    """
    code = expression(action)
    bare = _is_bare(name, action)
    try:
        compiled(code)
        if action.is_unbounded or (bare and code.strip().lower().startswith(name.strip().lower())):
            return []
        refused = next((text for text in own_texts(name, action) if not full_match(code, text)), None)
    except ExpressionError as error:
        return [f"the verification code of {name!r} cannot be used: {error}"]
    if refused is None:
        return []
    return [
        f"the verification code of {name!r} does not match all of its own action {refused!r}; give every parameter a "
        "placeholder such as {item} in the action's name"
    ]


@dataclass
class ActionCheck:
    """Checks many texts against the actions of one script. An expression that was once too slow is not asked again, so
    that a whole trajectory costs at most one time limit an action."""

    script: Script
    _slow: set[str] = field(default_factory=set)

    def allows(self, text: str) -> bool:
        """Whether `text` is one of the actions, with its parameters."""
        text = text.strip()
        return len(text) <= LONGEST_TEXT and any(
            self._matches(name, action, text) for name, action in self.script.actions.items()
        )

    def _matches(self, name: str, action: Action, text: str) -> bool:
        if name in self._slow:
            return False
        listed = action.is_unbounded or has_listed_parameters(name, action, text)
        if not listed and not (_is_bare(name, action) and _names_listed(action, text)):
            return False
        try:
            return full_match(expression(action), text)
        except TooSlowError:
            self._slow.add(name)
        except ExpressionError:
            pass
        return False
