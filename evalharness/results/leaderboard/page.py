"""The leaderboard as one static page: no server, no network, no fonts; sorts by a click; light and dark."""

from __future__ import annotations

from evalharness.results.html.document import asset, document
from evalharness.results.html.document import safe as _safe
from evalharness.results.leaderboard.marked_rows import MARKS
from evalharness.results.leaderboard.standings import Leaderboard
from evalharness.results.leaderboard.table import footnotes, page_table
from evalharness.results.tabular.markup import html_table


def page(board: Leaderboard) -> str:
    """The whole document. Every text in it is escaped, and its policy forbids loading anything."""
    listed = [note for note in footnotes(board) if note != MARKS["*"]]
    notes = "".join(f"<li>{_safe(note)}</li>" for note in listed)
    if any(standing.held_in for standing in board.standings):
        notes = "<li><u>Underlined</u>: the method's training data was sampled from this family.</li>" + notes
    body = f"""\
<h1>Leaderboard</h1>
<p>Percent. Our runs are shaded, with 95&nbsp;% intervals. A click on
a heading sorts.</p>
<div class="scroll">{html_table(page_table(board))}</div>
<footer><ul>{notes}</ul></footer>"""
    return "".join(document("Leaderboard", asset("html/page.css"), asset("html/page.js"), body))
