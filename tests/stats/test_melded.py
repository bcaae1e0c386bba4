"""The interval of a paired difference: it agrees with its test, and covers."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from progress_shapes import DIFFERENCES

from evalharness import stats

from .counts import Counts, changes, probabilities


@cache
def intervals(n: int) -> tuple[Counts, Counts, Counts, Counts]:
    """(gained, lost, low, high) for every outcome of n paired tasks."""
    gained, lost = changes(n)
    ends = [
        stats.paired_interval([[1.0] * int(b) + [-1.0] * int(c) + [0.0] * int(n - b - c)], p)
        for b, c, p in zip(gained, lost, stats.mcnemar_midp(gained, lost), strict=True)
    ]
    low, high = np.array(ends).T
    return gained, lost, low, high


def success_coverage(n: int, gains: float, losses: float) -> float:
    gained, lost, low, high = intervals(n)
    held = (low <= gains - losses + 1e-9) & (gains - losses - 1e-9 <= high)
    return float(probabilities(n, gained, lost, gains, losses)[held].sum())


deltas = st.lists(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.0, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


@settings(deadline=None)
@given(st.lists(deltas, min_size=1, max_size=4))
@example([[-0.5] * 7 + [0.0] * 3 + [0.5] * 3 + [1.0] * 2])
def test_the_interval_excludes_0_exactly_where_p_is_below_5_percent(strata: list[list[float]]) -> None:
    flat = [d for stratum in strata for d in stratum]
    p = stats.permutation_test(flat, flips=999)
    low, high = stats.paired_interval(strata, p)
    assert -1 <= low <= sum(flat) / len(flat) <= high <= 1
    assert (low > 0 or high < 0) == (p < 0.05)
    assert stats.paired_interval([[-d for d in stratum][::-1] for stratum in strata], p) == (-high, -low)


@settings(deadline=None)
@given(deltas, st.floats(1e-4, 1.0))
@example([-1.0] * 6 + [-0.5, -0.1, -0.1, 0.25] + [0.5] * 7 + [1.0] * 3, 1e-4)
def test_the_interval_agrees_with_the_p_of_any_test(differences: list[float], p: float) -> None:
    low, high = stats.paired_interval([differences], p)
    assert (low > 0 or high < 0) == (p < 0.05 and abs(sum(differences)) > 1e-9)


def test_differences_that_cancel_but_for_rounding_have_an_interval() -> None:
    """Added in order of size their sum is below 0, and so is that of the exchanged runs."""
    drawn = np.random.default_rng(0).choice(np.linspace(-0.4, 0.4, 9), (50_000, 40))
    cancelled = drawn[(np.sort(drawn).sum(axis=1) < 0) & (np.sort(-drawn).sum(axis=1) < 0)]
    assert len(cancelled)
    low, high = stats.paired_interval([cancelled[0].tolist()], 1.0)
    assert low == pytest.approx(-high, abs=1e-6)


def test_the_limits_are_the_quantiles_of_their_melded_distributions() -> None:
    """Seven gained, one lost, of 30, by drawing: the share of tasks that change, and of these the share gained."""
    generator = np.random.default_rng(3)
    count = 400_000
    half = generator.random(count) < 0.5
    share = np.where(half, generator.beta(7, 2, count), generator.beta(8, 1, count))
    size = generator.beta(8.5, 22.5, count)
    p = stats.mcnemar_midp(7, 1)
    assert p < 0.05
    low, high = stats.paired_interval([[1.0] * 7 + [-1.0] + [0.0] * 22], p)
    assert low == pytest.approx(np.quantile(size * (2 * share - 1), 0.025), abs=0.002)
    upper = generator.beta(9, 22, count) * (2 * share - 1)
    assert high == pytest.approx(np.quantile(upper, 0.975), abs=0.003)


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 60])
def test_the_interval_of_success_covers_93_percent_or_more(n: int) -> None:
    """Exact, over every outcome. Where fewer than three tasks are expected to change no level of 5 % can be used up."""
    for discordant in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8):
        for upwards in (0.5, 0.7, 0.9, 1.0):
            found = success_coverage(n, discordant * upwards, discordant * (1 - upwards))
            assert found >= 0.93
            if n * discordant >= 6:
                assert found <= 0.985, (discordant, upwards)


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 112])
@pytest.mark.parametrize("shape", DIFFERENCES)
def test_the_interval_of_progress_covers_93_percent_or_more(n: int, shape: str) -> None:
    """300 simulated comparisons, whose standard error is 1.3 points."""
    values, shares = DIFFERENCES[shape]
    drawn = np.random.default_rng(9).choice(values, (300, n), p=shares)
    truth = float(values @ shares)
    held = 0
    for row in drawn.tolist():
        low, high = stats.paired_interval([row], stats.permutation_test(row, flips=999))
        held += low - 1e-9 <= truth <= high + 1e-9
    assert held / 300 >= 0.91
    if n * (1 - max(shares)) > 10:
        assert held / 300 <= 0.99


def test_what_differs_between_families_is_no_error_of_the_difference() -> None:
    """30 tasks gained, all in a family of 60, and two families without a change."""
    strata = [[0.0] * 112, [0.0] * 90, [1.0] * 30 + [0.0] * 30]
    p = stats.permutation_test([d for stratum in strata for d in stratum])
    apart, mixed = (
        stats.paired_interval(each, p) for each in (strata, [[d for stratum in strata for d in stratum]])
    )
    assert apart[1] - apart[0] < 0.8 * (mixed[1] - mixed[0])


def test_runs_that_do_not_differ_leave_room_for_tasks_that_would() -> None:
    for n, reach in ((20, 0.135), (282, 0.0102)):
        low, high = stats.paired_interval([[0.0] * n], 1.0)
        assert -low == pytest.approx(high)
        assert high == pytest.approx(reach, rel=0.01)
    low, high = stats.paired_interval([[1.0] * 20], stats.mcnemar_midp(20, 0))
    assert 0.6 < low < high == pytest.approx(1.0)
