"""The leaderboard as one static page: no server, no network, no fonts; sorts by a click; light and dark."""

from __future__ import annotations

from evalharness.results.html.document import asset, document
from evalharness.results.html.document import safe as _safe
from evalharness.results.html.table import percent
from evalharness.results.leaderboard.table import (
    CORRECTED_NOTE,
    DERIVED_MARK,
    HELD_IN,
    HELD_IN_NOTE,
    footnotes,
    marked,
    marks,
)
from evalharness.results.paper.standings import Leaderboard, Standing
from evalharness.results.score import HELD_OUT, MEASURES


def _heading(text: str, kind: str, classes: str = "") -> str:
    attribute = f' class="{classes}"' if classes else ""
    return f'<th scope="col" data-kind="{kind}"{attribute}><button type="button">{_safe(text)}</button></th>'


def _head(board: Leaderboard) -> str:
    cells = [_heading("series", "text"), _heading("model", "text")]
    if _has_verification(board):
        cells.append(_heading("verified", "text", "verified"))
    for family in board.groups:
        title = board.titles.get(family, "Held\u2011out")
        for measure in (board.measures[measure] for measure in MEASURES):
            cells.append(_heading(f"{title} {measure}", "number"))
            cells.append(_heading(f"{title} {measure}, corrected", "number", "corrected"))
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _has_verification(board: Leaderboard) -> bool:
    return any(standing.verification for standing in board.standings)


def _name_cell(standing: Standing) -> str:
    name, shown = _safe(standing.name), _safe(marked(standing))
    text = (
        f'<a href="{_safe(standing.site)}" rel="noopener noreferrer nofollow">{shown}</a>'
        if standing.site
        else shown
    )
    by = f"<small>{_safe(standing.submitter)}</small>" if standing.submitter else ""
    return f'<td data-value="{name}">{text}{by}</td>'


_SHOWN = {"verified": "\u2713\u00a0yes", "not verified": "no"}


def _verification_cell(standing: Standing) -> str:
    said = standing.verification
    value = "" if said is None else "yes" if said == "verified" else "no"
    return f'<td class="verified" data-value="{value}">{_SHOWN.get(said or "", "")}</td>'


def _number(value: float | None, text: str, classes: str, *, part: bool = False) -> str:
    attribute = f' class="{classes}"' if classes else ""
    attribute += " data-part" if part else ""
    return f'<td data-value="{"" if value is None else f"{value:.6f}"}"{attribute}>{text}</td>'


def _interval(limits: tuple[float, float] | None, standing: Standing) -> str:
    if limits is None:
        return ""
    derived = "" if standing.ours else DERIVED_MARK
    return f"<small>{100 * limits[0]:.1f} to {100 * limits[1]:.1f}{derived}</small>"


def _row(standing: Standing, board: Leaderboard) -> str:
    series = _safe(standing.series)
    cells = [f'<td data-value="{series}">{series}</td>', _name_cell(standing)]
    if _has_verification(board):
        cells.append(_verification_cell(standing))
    for column in board.columns:
        value = standing.values.get(column)
        text = percent(value) + marks(board, standing, column).replace(HELD_IN, "")
        part = standing.is_incomplete(column)
        held_out = column.startswith(HELD_OUT)
        if standing.ours or held_out:
            text += _interval(standing.ci95.get(column), standing)
        held_in = "held-in" if board.is_held_in(standing, column) else ""
        cells.append(_number(value, text, held_in, part=part))
        corrected = standing.chance_corrected.get(column)
        limits = standing.chance_corrected_ci95.get(column) if standing.ours or held_out else None
        shown = percent(corrected) + _interval(limits, standing)
        cells.append(_number(corrected, shown, "corrected", part=part))
    attribute = ' class="own"' if standing.ours else ""
    return f"<tr{attribute}>{''.join(cells)}</tr>"


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
        label = f"{standing.name} ({standing.series})" if standing.name in _repeated(rows) else standing.name
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
                parts.append(
                    f'<line class="{measure}" x1="{low}" y1="{y}" x2="{high}" y2="{y}" stroke-width="2"/>'
                )
            parts.append(_mark(measure, _x(value), y, f"{label}: {measure} {percent(value)} %"))
    return (
        f'<svg viewBox="0 0 {_LEFT + _WIDTH + 30} {height}" width="{_LEFT + _WIDTH + 30}" role="img" '
        f'aria-label="Held-out success and progress of every model">{"".join(parts)}</svg>'
    )


def _repeated(rows: list[Standing]) -> set[str]:
    names = [standing.name for standing in rows]
    return {name for name in names if names.count(name) > 1}


def _mark(measure: str, x: float, y: float, title: str) -> str:
    """A disc or a square: distinct without colour too."""
    name = f"<title>{_safe(title)}</title>"
    if measure == "success":
        return f'<rect class="success" x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9">{name}</rect>'
    return f'<circle class="progress" cx="{x}" cy="{y}" r="5">{name}</circle>'


def _held_out_section(board: Leaderboard) -> str:
    return f"<h2>Held-out score</h2>\n{plot(board)}" if board.held_out else ""


def _shaded(board: Leaderboard) -> str:
    return "Runs that were submitted" if any(s.submitter for s in board.standings) else "Our runs"


def page(board: Leaderboard) -> str:
    """The whole document. Every text in it is escaped, and its policy forbids loading anything."""
    rows = "".join(_row(standing, board) for standing in board.standings)
    notes = "".join(f"<li>{_safe(note)}</li>" for note in footnotes(board) if note != HELD_IN_NOTE)
    if any(standing.held_in for standing in board.standings):
        notes = "<li><u>Underlined</u>: the method's training data was sampled from this family.</li>" + notes
    notes += f"<li>{_safe(CORRECTED_NOTE)}</li>"
    body = f"""\
<h1>Leaderboard</h1>
<p>Percent. {_shaded(board)} are shaded, with 95&nbsp;% intervals. A click on a heading sorts.
<label><input type="checkbox" id="corrected"> show chance-corrected scores (0: chance, 100: best known plans)
</label></p>
<div class="scroll"><table id="board">{_head(board)}<tbody>{rows}</tbody></table></div>
{_held_out_section(board)}
<footer><ul>{notes}</ul></footer>"""
    return "".join(
        document("Leaderboard", asset("html/theme.css") + asset("html/page.css"), asset("html/page.js"), body)
    )
