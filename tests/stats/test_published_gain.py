"""A gain between two printed rates: interval, p, and the games that would decide."""

import re

import pytest
from published_gains import GAINS, read_gains, table_lines

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


def test_the_table_of_published_gains_is_what_compare_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Each row of results/published/gains.csv is judged by the command; the page has that table and its counts."""
    page = (GAINS.parent / "README.md").read_text(encoding="utf-8")
    table = list(table_lines())
    assert "\n".join(table) in page
    rows = read_gains()
    for row, line in zip(rows, table[2:], strict=True):
        rates = [f"{row[name]}% of {row['games']}" for name in ("baseline_rate", "rate")]
        assert main(["compare", "--published", *rates]) == 0
        said = re.search(
            r"gain (\S+) points, 95 % interval (\[.*\]), p = (\S+) .* needs (\S+) games",
            " ".join(capsys.readouterr().out.split()),
        )
        assert said is not None
        assert f"| {said[1]} {said[2]} | {said[3]} | {said[4]} |" in line
    undecided = sum(float(line.split("|")[-3]) >= 0.05 for line in table[2:])
    stated = sum(row["games_stated"] != "not stated" for row in rows)
    works = len({row["source"] for row in rows})
    about = page.split("## Published ALFWorld gains")[1].split("\n\n")[1]
    assert {str(number) for number in (len(rows), works, undecided, stated)} <= set(re.findall(r"\d+", about))
