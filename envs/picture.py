"""Pictures of worlds as small SVG documents. Names are escaped: they come from tasks, stories and models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

INK, PAPER, SOFT, HERE = "#24292f", "#ffffff", "#d0d7de", "#f2a93b"


def svg(width: float, height: float, parts: Iterable[str]) -> str:
    """Return a whole document, `width` by `height` pixels."""
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    font = 'font-family="system-ui, sans-serif" font-size="11"'
    paper = rect(0, 0, width, height, PAPER)
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{paper}{"".join(parts)}</svg>'


def rect(
    x: float, y: float, width: float, height: float, fill: str, stroke: str = "none", round_: float = 0
) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_:g}" fill="{fill}" '
        f'stroke="{stroke}"/>'
    )


def circle(x: float, y: float, radius: float, fill: str, stroke: str = "none") -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{stroke}"/>'


def polygon(points: Iterable[tuple[float, float]], fill: str, stroke: str = "none") -> str:
    return (
        f'<polygon points="{" ".join(f"{x:g},{y:g}" for x, y in points)}" fill="{fill}" stroke="{stroke}"/>'
    )


def line(start: tuple[float, float], end: tuple[float, float], stroke: str, width: float = 1) -> str:
    return (
        f'<line x1="{start[0]:g}" y1="{start[1]:g}" x2="{end[0]:g}" y2="{end[1]:g}" stroke="{stroke}" '
        f'stroke-width="{width:g}"/>'
    )


def text(
    x: float, y: float, said: str, *, anchor: str = "middle", bold: bool = False, longest: int = 24
) -> str:
    """`longest`: characters; a longer text is cut."""
    shown = said if len(said) <= longest else said[: longest - 1] + "…"
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" fill="{INK}" text-anchor="{anchor}"{weight}>{_escape(shown)}</text>'


def _escape(said: str) -> str:
    """Escape for XML: no control characters, no unpaired surrogates."""
    return escape("".join(c if c.isprintable() else "�" for c in said))


_COLUMNS, _WIDTH, _HEIGHT, _ROOM = 3, 118, 26, 20


def place_maps(walk: Sequence[str]) -> list[str]:
    """Return the map of a whole walk, once for each of its moments, with the place of that moment marked; the same
    place gives the same document. `walk`: the place at each moment, empty if unknown. Empty if no place is known.

    Places are drawn in the order of first visits. A line joins places that follow each other, thicker and darker
    the more often it was walked; a number counts the visits of a place.
    """
    if not any(walk):
        return []
    walk = [name or "start" for name in walk]
    comings = [name for i, name in enumerate(walk) if i == 0 or walk[i - 1] != name]
    at = {name: _middle(i) for i, name in enumerate(dict.fromkeys(comings))}
    ways = Counter(frozenset(step) for step in pairwise(comings))
    lines = []
    for way, times in ways.items():
        one, other = (at[name] for name in sorted(way))
        lines.append(line(one, other, SOFT if times < 3 else INK, min(1 + times, 7)))
    visits, rows = Counter(comings), -(-len(at) // _COLUMNS)
    width, height = _COLUMNS * (_WIDTH + _ROOM) + _ROOM, rows * (_HEIGHT + _ROOM) + _ROOM
    maps = {
        here: svg(width, height, [*lines, *(_box(name, at[name], visits[name], name == here) for name in at)])
        for here in at
    }
    return [maps[name] for name in walk]


def _box(name: str, middle: tuple[float, float], visits: int, here: bool) -> str:
    x, y = middle
    count = f" ×{visits}" if visits > 1 else ""
    room = 18 - len(count)
    shown = name if len(name) <= room else name[: room - 1] + "…"
    fill, stroke = (HERE, INK) if here else (PAPER, SOFT)
    frame = rect(x - _WIDTH / 2, y - _HEIGHT / 2, _WIDTH, _HEIGHT, fill, stroke, 6)
    return frame + text(x, y + 4, shown + count, bold=here)


def _middle(number: int) -> tuple[float, float]:
    """Return the position of a place: rows alternate their direction, so the next new place is beside the last one."""
    row, column = divmod(number, _COLUMNS)
    if row % 2:
        column = _COLUMNS - 1 - column
    return _ROOM + _WIDTH / 2 + column * (_WIDTH + _ROOM), _ROOM + _HEIGHT / 2 + row * (_HEIGHT + _ROOM)
