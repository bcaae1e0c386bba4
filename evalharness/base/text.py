"""Text from a model or a game, made safe to show."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from evalharness.base.redaction import redact

_HARMLESS = frozenset("\n\t")
_DANGEROUS_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Controls (ANSI escapes begin with one), formats (bidirectional overrides, zero widths), surrogates, unassigned."""


def printable(text: str, *, single_line: bool = False) -> str:
    """`text` with everything that could steer a terminal shown as its code point, `\\x1b` say, and
    without secrets of this process."""
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
    """`45 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def no_formula(text: str) -> str:
    """Text that a spreadsheet would take for a formula gets an apostrophe before it."""
    return f"'{text}" if text.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def inert(value: Any) -> Any:
    """A cell of a CSV file: no formula, and what could steer a terminal is shown as its code point."""
    return printable(no_formula(value)) if isinstance(value, str) else value


_PIECE = re.compile(r"[^\s/_.,:-]*[\s/_.,:-]*")


def pieces(text: str) -> list[str]:
    """What a line is broken between: behind a space, a slash, a dash, a point."""
    return [piece for piece in _PIECE.findall(text) if piece]


def fold(text: str, width: int) -> str:
    """In lines of at most `width` characters. A piece is cut where it is longer itself, and nowhere else."""
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
    """A subgoal's label for people: some suites write them as patterns over observations, with `\\d+` for the number of
    a thing, a group for a number that is measured, and lookaheads or `*` for what may stand between."""
    parts = _LOOKAHEAD.findall(label) if label.startswith("^(?=") else [label]
    text = _NUMBER.sub("N", " ".join(parts)).replace(" \\d+", "").replace("\\.", ".")
    text = " ".join(_ANYTHING.sub(" ... ", text).strip("^$ ").removeprefix("...").split())
    # An observation goes on behind an article.
    return _AN.sub("an ", text) + (" ..." if text.endswith(" the") else "")
