"""A page that is one file: its style and its script inside, and a policy that lets it load nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from evalharness.base.text import printable


def percent(value: float | None, limits: Sequence[float] | None = None) -> str:
    """`44.8 [36.6, 53.2]`; "-" where there is none."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    return text if limits is None else f"{text} [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"


def asset(name: str) -> str:
    """A style sheet or script that lies in a folder of `evalharness.results`."""
    return (files("evalharness.results") / name).read_text(encoding="utf-8")


def safe(text: str) -> str:
    """Any text as HTML text or attribute value, controls as visible escapes."""
    return escape(printable(text, single_line=True), quote=True)


def _allowed(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def document(
    title: str, style: str, script: str, body: str, after: Iterable[str] = (), *, connect: str = "'none'"
) -> Iterator[str]:
    """The parts of the whole document, in order.

    Only this very style and this very script are allowed (by their hashes), so that nothing in `body`, whatever it is,
    can run. The script comes after `body` and before `after`: it starts before the bulk of the data has been read.
    `connect` is the policy's `connect-src`.
    """
    policy = (
        f"default-src 'none'; script-src {_allowed(script)}; style-src {_allowed(style)}; "
        f"connect-src {connect}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    yield f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer">
<title>{safe(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
"""
    yield from after
    yield "</body>\n</html>\n"
