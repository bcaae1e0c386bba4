"""Decide whether a text is one of a script's actions, by its regular expression and its lists of parameter values.

The paper defines neither the syntax of placeholders nor what "match" means. Here `{item}` and `<item>` both stand for
the parameter `item`, in an action's name and in its expression. If the name has no placeholder for a parameter, the
value follows the name: `open door`. An expression must match the whole action.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import regex

from evalharness.training.synthesis.script import Action, Script

TIME_LIMIT = 2.0
"""Seconds for one match. Good expressions take microseconds. The limit is high because the machine may be busy: with
0.1 s, one of 300 good scripts was refused."""
LONGEST_EXPRESSION = 20_000
"""Maximum number of characters of an expression, counted after its placeholders are replaced by all values."""
LONGEST_TEXT = 2_000
"""Maximum number of characters of an action. An action is one line, so a longer text is refused without matching."""


class ExpressionError(ValueError):
    """The expression cannot be used; the message says why."""


class TooSlowError(ExpressionError):
    """A match exceeded the time limit."""


@functools.lru_cache(maxsize=4096)
def compile_expression(expression: str) -> regex.Pattern[str]:
    if len(expression) > LONGEST_EXPRESSION:
        raise ExpressionError(f"it has more than {LONGEST_EXPRESSION:,} characters")
    try:
        return regex.compile(expression)
    except (regex.error, RecursionError, OverflowError, MemoryError, ValueError) as error:
        raise ExpressionError(f"it does not compile: {str(error)[:120] or type(error).__name__}") from None


def matches_fully(expression: str, text: str) -> bool:
    """Return whether the expression matches the whole text. Raises ExpressionError; its subclass TooSlowError on a
    timeout."""
    pattern = compile_expression(expression)
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
"""Matches the placeholder of a parameter. `<name>` after `(?P`, `(?`, `\\k` or `\\g` is no placeholder but regular
expression syntax."""
_MOST_OWN_TEXTS = 200
_ANY = "something"
"""Sample value for a parameter without listed values, used to test an action's expression."""


def _split_parts(text: str, parameters: Mapping[str, object]) -> list[tuple[str, bool]]:
    """Split `text` into (literal, False) and (parameter, True). Brackets around a word that is no parameter stay
    literal."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        name = match[1] or match[2]
        if name in parameters:
            parts += [(text[end : match.start()], False), (name, True)]
            end = match.end()
    parts.append((text[end:], False))
    return [part for part in parts if part[0] or part[1]]


def split_name(name: str, action: Action) -> list[tuple[str, bool]]:
    """Split the action's name into literals and parameters. Parameters without a placeholder follow the name, each
    after a blank."""
    parts = _split_parts(name.strip(), action.parameters)
    placed = {text for text, is_parameter in parts if is_parameter}
    for parameter in action.parameters:
        if parameter not in placed:
            parts += [(" ", False), (parameter, True)]
    return parts


def list_own_texts(name: str, action: Action) -> list[str]:
    """Return sample texts of the action, which its expression must match. Together they have every value of every
    parameter, up to `_MOST_OWN_TEXTS` texts."""
    values = {parameter: listed or [_ANY] for parameter, listed in action.parameters.items()}
    parts = split_name(name, action)
    count = min(max((len(listed) for listed in values.values()), default=1), _MOST_OWN_TEXTS)
    return [
        "".join(
            values[text][index % len(values[text])] if is_parameter else text for text, is_parameter in parts
        )
        for index in range(count)
    ]


def write_expression(action: Action) -> str:
    """Return the verification code with its placeholders replaced by the parameters' values."""
    return "".join(
        _write_alternatives(action.parameters[text]) if is_parameter else text
        for text, is_parameter in _split_parts(action.verification_code, action.parameters)
    )


def _write_alternatives(values: list[str] | None) -> str:
    return f"(?:{'|'.join(map(re.escape, values))})" if values else "(?:.+)"


@functools.lru_cache(maxsize=4096)
def _make_set(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(values)


def has_listed_parameters(name: str, action: Action, text: str) -> bool:
    """Return whether `text` is the action's name with listed values for its parameters. This check uses no regular
    expression, because long lists would make it slow."""
    ends = {0}
    for part, is_parameter in split_name(name, action):
        if not is_parameter:
            ends = {end + len(part) for end in ends if text.startswith(part, end)}
        elif values := action.parameters[part]:
            ends = {end + len(v) for end in ends for v in _make_set(tuple(values)) if text.startswith(v, end)}
        else:  # a parameter without a list: one character or more
            ends = set(range(min(ends) + 1, len(text) + 1)) if ends else set()
        if not ends:
            return False
    return len(text) in ends


def _is_bare(name: str, action: Action) -> bool:
    """Return whether the action has parameters, but its name has no placeholder."""
    return bool(action.parameters) and not any(placed for _, placed in _split_parts(name, action.parameters))


def _names_listed(action: Action, text: str) -> bool:
    """Return whether `text` contains a listed value of each parameter. If the name has no placeholders, nothing more
    can be checked."""
    return all(any(value in text for value in listed) for listed in action.parameters.values() if listed)


def find_action_mistakes(name: str, action: Action) -> list[str]:
    """Return the mistakes of an action's expression, as sentences that are sent to the model.

    As in the paper, a name may lack placeholders (`put` for `put (.+) in (.+)`). Then the positions of the parameters
    are unknown, and an expression that begins with the name is accepted without a test.
    """
    code = write_expression(action)
    bare = _is_bare(name, action)
    try:
        compile_expression(code)
        if action.is_unbounded or (bare and code.strip().lower().startswith(name.strip().lower())):
            return []
        refused = next((text for text in list_own_texts(name, action) if not matches_fully(code, text)), None)
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
    """Checks many texts against the actions of one script. After a timeout an expression is not used again, so each
    action costs a trajectory at most one timeout."""

    script: Script
    _slow: set[str] = field(default_factory=set)

    def allows(self, text: str) -> bool:
        """Return whether `text` is one of the script's actions with allowed parameters."""
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
            return matches_fully(write_expression(action), text)
        except TooSlowError:
            self._slow.add(name)
        except ExpressionError:
            pass
        return False
