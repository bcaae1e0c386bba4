"""Test the difference between two published rates, such as 46.1 % and 55.5 % of 128 games, without their episodes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import NormalDist

import numpy as np

from evalharness.base.errors import UserError
from evalharness.stats.intervals import wilson


@dataclass(frozen=True)
class PrintedRate:
    successes: int
    games: int

    @property
    def share(self) -> float:
        return self.successes / self.games


def parse_rate(text: str) -> PrintedRate:
    """Parse a text like `46.1% of 128`. Raise UserError if it has another form."""
    match = re.fullmatch(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*of\s*(\d{1,7})\s*", text)
    if match is None or float(match[1]) > 100 or int(match[2]) == 0:
        raise UserError(f"--published {text!r}: write a rate and its games, such as '46.1% of 128'")
    games = int(match[2])
    return PrintedRate(round(float(match[1]) / 100 * games), games)


def difference_interval(before: PrintedRate, after: PrintedRate) -> tuple[float, float]:
    """Return the 95 % interval of after - before, if games are independent (Newcombe, Stat. in Medicine 17 (1998)
    873-890, method 10)."""
    (low_a, high_a), (low_b, high_b) = (wilson(rate.successes, rate.games) for rate in (before, after))
    gain = after.share - before.share
    down = sqrt((after.share - low_b) ** 2 + (high_a - before.share) ** 2)
    up = sqrt((high_b - after.share) ** 2 + (before.share - low_a) ** 2)
    return gain - down, gain + up


def fisher_p(before: PrintedRate, after: PrintedRate) -> float:
    from scipy.stats import fisher_exact  # slow to import

    table = np.array([[rate.successes, rate.games - rate.successes] for rate in (before, after)])
    return float(fisher_exact(table).pvalue)


def games_needed(before: PrintedRate, after: PrintedRate, power: float = 0.8) -> int | None:
    """Return the games per rate with which a test detects this gain at p < 0.05; None if the rates are equal."""
    gain = after.share - before.share
    if gain == 0:
        return None
    z = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(power)
    spread = sum(rate.share * (1 - rate.share) for rate in (before, after))
    return max(2, ceil(z**2 * spread / gain**2))


def expected_distinct(draws: int, games: int) -> float:
    """Return the expected number of different games if `draws` games are drawn from `games` with replacement."""
    return games * (1 - (1 - 1 / games) ** draws)


def describe_gain(before: PrintedRate, after: PrintedRate, draws_from: int | None = None) -> list[str]:
    low, high = (100 * end for end in difference_interval(before, after))
    needed = games_needed(before, after)
    lines = [
        f"gain {100 * (after.share - before.share):+.1f} points, 95 % interval [{low:+.1f}, {high:+.1f}], "
        f"p = {fisher_p(before, after):.2g} (Fisher's exact test; games independent)"
    ]
    if needed is not None:
        seeds = ceil(needed / min(before.games, after.games))
        lines.append(
            f"80 % power for this gain needs {needed:,} games on each side: {seeds} evaluations of this size; "
            "this does not include the variation between trainings"
        )
    if draws_from is not None:
        lines += [
            f"{draws} draws with replacement from {draws_from} games: "
            f"{expected_distinct(draws, draws_from):.0f} different games expected"
            for draws in dict.fromkeys((before.games, after.games))
        ]
    return lines
