"""A perturbation for a terminal: what was and what is, side by side."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping
from itertools import zip_longest

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_CONTEXT = 1
"""Unchanged lines shown around a change."""


def side_by_side(
    actions: Mapping[str, Mapping[str, str]], texts: Mapping[str, str], width: int
) -> RenderableType:
    """The reworded actions, then every line of the prompt that differs; wrapped to `width` columns."""
    half = max(20, (min(width, 120) - 3) // 2)
    parts: list[RenderableType] = []
    if actions:
        pairs = [(both["before"], both["after"]) for both in actions.values()]
        parts += ["", _table("actions", [(*pair, True) for pair in pairs], half)]
    before, after = texts["before"].split("\n"), texts["after"].split("\n")
    rows: list[tuple[str, str, bool]] = []
    matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            rows.append(("...", "...", False))
        for tag, i1, i2, j1, j2 in group:
            both = zip_longest(before[i1:i2], after[j1:j2], fillvalue="")
            rows += [(old, new, tag != "equal") for old, new in both]
    if rows:
        parts += ["", _table("prompt, where it differs", rows, half)]
    else:
        parts += ["", "the prompt is the same"]
    return Group(*parts)


def _table(title: str, rows: list[tuple[str, str, bool]], half: int) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(f"{title}: before", width=half, no_wrap=True)
    table.add_column("after", width=half, no_wrap=True)
    for old, new, changed in rows:
        sides = (textwrap.wrap(text, half, subsequent_indent="  ") or [""] for text in (old, new))
        for was, now in zip_longest(*sides, fillvalue=""):
            table.add_row(
                Text(was, style="red" if changed else "dim"), Text(now, style="green" if changed else "dim")
            )
    return table
