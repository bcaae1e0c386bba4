"""A gain between two printed rates: interval, p, and the games that would decide."""

import pytest

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.stats.published_gain import (
    PrintedRate,
    difference_interval,
    expected_distinct,
    games_needed,
    parse_rate,
)


def test_newcombes_own_example() -> None:
    """56/70 and 48/80: method 10 gives 0.0524 to 0.3339 (table II of the paper)."""
    low, high = difference_interval(PrintedRate(48, 80), PrintedRate(56, 70))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_draws_and_games_needed() -> None:
    assert round(expected_distinct(128, 140)) == 84
    needed = games_needed(parse_rate("50% of 100"), parse_rate("60% of 100"))
    assert needed == 385  # Fleiss: (1.96 + 0.84)^2 (0.25 + 0.24) / 0.1^2
    assert games_needed(PrintedRate(1, 2), PrintedRate(1, 2)) is None


@pytest.mark.parametrize("text", ["46.1", "146% of 10", "40% of 0", "x% of 3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="such as"):
        parse_rate(text)


def test_compare_judges_two_printed_rates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--published", "46.1% of 128", "55.5% of 128", "--draws-from", "140"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "gain +9.4 points" in shown
    assert "84 different games" in shown
