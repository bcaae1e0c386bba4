"""Write an HTML page as one file with its style and script. Its content security policy forbids it to load anything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from evalharness.base.text import printable


def percent(value: float | None, limits: Sequence[float] | None = None) -> str:
    """Return a fraction in percent: `44.8 [36.6, 53.2]`; "-" for None."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    return text if limits is None else f"{text} [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"


def asset(name: str) -> str:
    """Read the style sheet or script `name` from the package `evalharness.results`."""
    return (files("evalharness.results") / name).read_text(encoding="utf-8")


def safe(text: str) -> str:
    """Escape any text for use as HTML text or attribute value; control characters become visible escapes."""
    return escape(printable(text, single_line=True), quote=True)


def _source_hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def document(
    title: str, style: str, script: str, body: str, after: Iterable[str] = (), *, connect: str = "'none'"
) -> Iterator[str]:
    """Yield the HTML document in parts, in order.

    The content security policy allows only `style` and `script` (by their hashes), so no script in `body` can run.
    `script` comes before `after`, so that it starts before the browser has read the large data in `after`. `connect` is
    the policy's `connect-src`: the addresses to which the script may connect.
    """
    policy = (
        f"default-src 'none'; script-src {_source_hash(script)}; style-src {_source_hash(style)}; "
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
