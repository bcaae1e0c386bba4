"""A limit that a comparison must keep, for a continuous integration: `held_out < -2`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evalharness.base.errors import UserError, nearest
from evalharness.results.difference import Difference
from evalharness.results.score import MEASURES

_FORM = re.compile(
    r"\s*([^<>]+?)(?:_(success|progress))?(?:\.(low|high))?\s*([<>])\s*([-+]?\d+(?:\.\d+)?)\s*"
)


@dataclass(frozen=True)
class Limit:
    """Fails if an end of the difference's 95 % interval is beyond `points`."""

    text: str
    family: str
    """Or `held_out`, `held_out_estimate`, `pooled`."""
    measure: str
    end: str
    """`low` or `high`."""
    below: bool
    points: float

    def test(self, differences: Sequence[Difference]) -> tuple[bool, Difference]:
        """(whether it fails, the difference that it is about). Raises UserError if the comparison has no such score."""
        found = {d.family: d for d in differences if d.measure == self.measure}
        if self.family not in found:
            raise UserError(
                f"--fail-if {self.text}: the comparison has no {self.family}{nearest(self.family, sorted(found))}"
            )
        d = found[self.family]
        value = 100 * d.ci95[self.end == "high"]
        return (value < self.points if self.below else value > self.points), d


def parse_limit(text: str) -> Limit:
    """SCORE[_success|_progress][.low|.high] <|> POINTS. Without an end the whole interval must be beyond the points.
    Raises UserError."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise UserError(
            f"--fail-if {text}: give a score, < or >, and points: 'held_out < -2', 'babyai_progress.low < -5'"
        )
    family, measure, end, sign, points = match.groups()
    if abs(float(points)) > 100:
        raise UserError(f"--fail-if {text}: points are from -100 to 100")
    below = sign == "<"
    return Limit(
        text.strip(),
        family,
        measure or MEASURES[0],
        end or ("high" if below else "low"),
        below,
        float(points),
    )
