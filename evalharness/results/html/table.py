"""A table as HTML for a notebook. Every text in it is escaped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    def cells(tag: str, texts: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts) + "</tr>"

    body = "".join(cells("td", row) for row in rows)
    head = f"<caption>{escape(caption)}</caption><thead>{cells('th', headings)}</thead>"
    return f"<table>{head}<tbody>{body}</tbody></table>" + (f"<p>{escape(note)}</p>" if note else "")


def percent(value: float | None, limits: Sequence[float] | None = None, mark: str = "") -> str:
    """`44.8 [36.6, 53.2]`, `mark` behind the number; "-" where there is none."""
    if value is None:
        return "-"
    text = f"{100 * value:.1f}{mark}"
    return text if limits is None else f"{text} [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"
