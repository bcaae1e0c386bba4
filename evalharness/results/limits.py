"""Make a comparison fail if a difference is beyond a limit, for example in continuous integration: `held_out < -2`."""

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
    """A limit (`--fail-if`). A comparison fails if one end of the difference's 95 % interval is beyond `points`."""

    text: str
    family: str
    """Name of the score: a family, `held_out`, `held_out_estimate` or `pooled`."""
    measure: str
    end: str
    """The end of the interval that is compared with `points`: `low` or `high`."""
    below: bool
    points: float

    def test(self, differences: Sequence[Difference]) -> tuple[bool, Difference]:
        """Return (whether the comparison fails, the tested difference). Raise UserError if the score is missing."""
        tests = {d.family: d for d in differences if d.measure == self.measure}
        if self.family not in tests:
            raise UserError(
                f"--fail-if {self.text}: the comparison has no {self.family}{nearest(self.family, sorted(tests))}"
            )
        d = tests[self.family]
        value = 100 * d.ci95[self.end == "high"]
        return (value < self.points if self.below else value > self.points), d


def parse_limit(text: str) -> Limit:
    """Parse `SCORE[_success|_progress][.low|.high] <|> POINTS`. Without `low` or `high`, the comparison fails if the
    whole interval is beyond POINTS. Raise UserError if the text has another form."""
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
