"""Make text of a model or a game safe to show."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from evalharness.base.redaction import redact

_HARMLESS = frozenset("\n\t")
_DANGEROUS_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control characters (ANSI escapes begin with one), format characters (bidirectional overrides, zero widths),
surrogates, unassigned characters."""


def printable(text: str, *, single_line: bool = False) -> str:
    """Return `text` without secrets; characters that could control a terminal become code points, such as `\\x1b`."""
    text = redact(text)
    harmless = frozenset() if single_line else _HARMLESS
    if all(c in harmless or unicodedata.category(c) not in _DANGEROUS_CATEGORIES for c in text):
        return text
    return "".join(
        c
        if c in harmless or unicodedata.category(c) not in _DANGEROUS_CATEGORIES
        else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def duration(seconds: float) -> str:
    """Format seconds as `45 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def no_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would read as a formula."""
    return f"'{text}" if text.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def inert(value: Any) -> Any:
    """Return a safe cell of a CSV file: no formula, and no characters that could control a terminal."""
    return printable(no_formula(value)) if isinstance(value, str) else value


_PIECE = re.compile(r"[^\s/_.,:-]*[\s/_.,:-]*")


def pieces(text: str) -> list[str]:
    """Split a line at the places where it may be broken: after spaces and some punctuation."""
    return [piece for piece in _PIECE.findall(text) if piece]


def fold(text: str, width: int) -> str:
    """Break a text into lines of at most `width` characters at the places of `pieces`; cut only a longer piece."""
    lines = [""]
    for piece in pieces(text):
        if len(lines[-1]) + len(piece.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines)


_LOOKAHEAD = re.compile(r"\(\?=\.\*\s*(.*?)\)")
_NUMBER = re.compile(r"\([^()]*\[0-9\][^()]*\)")
_ANYTHING = re.compile(r"(?:\.?\*)+")
_AN = re.compile(r"\ba (?=[aeiou])")


def subgoal_words(label: str) -> str:
    """Return a readable subgoal label. Some suites write labels as patterns over observations: `\\d+` for an object's
    number, a group for a measured number, and lookaheads or `*` for other text."""
    parts = _LOOKAHEAD.findall(label) if label.startswith("^(?=") else [label]
    text = _NUMBER.sub("N", " ".join(parts)).replace(" \\d+", "").replace("\\.", ".")
    text = " ".join(_ANYTHING.sub(" ... ", text).strip("^$ ").removeprefix("...").split())
    # A label that ends in "the" is only the beginning of an observation, so mark the missing words.
    return _AN.sub("an ", text) + (" ..." if text.endswith(" the") else "")
