"""The leaderboard as one static page: no server, no network, no fonts; sorts by a click; light and dark."""

from __future__ import annotations

from evalharness.results.html.document import asset, document, percent
from evalharness.results.html.document import safe as _safe
from evalharness.results.leaderboard.marked_rows import MARKS
from evalharness.results.leaderboard.standings import Leaderboard
from evalharness.results.leaderboard.table import CORRECTED_NOTE, footnotes, page_table
from evalharness.results.score import HELD_OUT, MEASURES
from evalharness.results.tabular.markup import html_table

_LEFT, _WIDTH, _STEP, _TOP = 250, 620, 24, 30
_LABEL = 34
"""Characters of a name that fit left of the plot in bold."""


def _x(value: float) -> float:
    return round(_LEFT + _WIDTH * value, 1)


def plot(board: Leaderboard) -> str:
    """Held-out success and progress of every row that has them, best progress first, as inline SVG."""
    column = f"{HELD_OUT}_progress"
    rows = [standing for standing in board.standings if standing.values.get(column) is not None]
    rows.sort(key=lambda standing: standing.values[column] or 0.0, reverse=True)
    if not rows:
        return ""
    names = [standing.name for standing in rows]
    height = _TOP + _STEP * len(rows) + 30
    parts = []
    for tick in range(0, 101, 20):
        x = _x(tick / 100)
        parts.append(f'<line class="grid" x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{height - 24}"/>')
        parts.append(f'<text x="{x}" y="{height - 8}" text-anchor="middle">{tick}</text>')
    for i, measure in enumerate(MEASURES):
        x = _LEFT + 110 * i
        parts.append(_mark(measure, x, 12, f"{measure} %"))
        parts.append(f'<text x="{x + 10}" y="16">{measure} %</text>')
    for i, standing in enumerate(rows):
        y = _TOP + _STEP * i + 8
        weight = ' class="own"' if standing.ours else ""
        several = names.count(standing.name) > 1
        label = f"{standing.name} ({standing.series})" if several else standing.name
        shown = label if len(label) <= _LABEL else f"{label[: _LABEL - 1]}\u2026"
        parts.append(
            f'<text x="{_LEFT - 12}" y="{y + 4}" text-anchor="end"{weight}>{_safe(shown)}'
            f"<title>{_safe(label)}</title></text>"
        )
        for measure in MEASURES:
            name = f"{HELD_OUT}_{measure}"
            value = standing.values.get(name)
            if value is None:
                continue
            if name in standing.ci95:
                low, high = (_x(end) for end in standing.ci95[name])
                line = f'x1="{low}" y1="{y}" x2="{high}" y2="{y}"'
                parts.append(f'<line class="{measure}" {line} stroke-width="2"/>')
            parts.append(_mark(measure, _x(value), y, f"{label}: {measure} {percent(value)} %"))
    return (
        f'<svg viewBox="0 0 {_LEFT + _WIDTH + 30} {height}" width="{_LEFT + _WIDTH + 30}" role="img" '
        f'aria-label="Held-out success and progress of every model">{"".join(parts)}</svg>'
    )


def _mark(measure: str, x: float, y: float, title: str) -> str:
    """A disc or a square: distinct without colour too."""
    name = f"<title>{_safe(title)}</title>"
    if measure == "success":
        return f'<rect class="success" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9">{name}</rect>'
    return f'<circle class="progress" cx="{x}" cy="{y}" r="5">{name}</circle>'


def page(board: Leaderboard) -> str:
    """The whole document. Every text in it is escaped, and its policy forbids loading anything."""
    listed = [note for note in (*footnotes(board), CORRECTED_NOTE) if note != MARKS["*"]]
    notes = "".join(f"<li>{_safe(note)}</li>" for note in listed)
    if any(standing.held_in for standing in board.standings):
        notes = "<li><u>Underlined</u>: the method's training data was sampled from this family.</li>" + notes
    body = f"""\
<h1>Leaderboard</h1>
<p>Percent. Our runs are shaded, with 95&nbsp;% intervals. A click on
a heading sorts. <label><input type="checkbox" id="corrected"> show chance-corrected scores instead (0: chance, 100:
best known plans)</label></p>
<div class="scroll">{html_table(page_table(board))}</div>
{f"<h2>Held-out score</h2>{plot(board)}" if board.held_out else ""}
<footer><ul>{notes}</ul></footer>"""
    return "".join(document("Leaderboard", asset("html/page.css"), asset("html/page.js"), body))
