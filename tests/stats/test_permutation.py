"""The permutation test and Holm's adjustment against other implementations and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_shapes import PROGRESS
from scipy import stats as reference

from evalharness import stats


def test_permutation_test_agrees_with_scipy() -> None:
    differences = [0.25, -0.5, 0.75, 0.5, 0.25, 0.5, -0.25, 1.0, 0.125]
    expected = reference.permutation_test(
        (differences,), lambda x: np.sum(x), permutation_type="samples", n_resamples=np.inf
    )
    sums = np.abs(expected.null_distribution)
    observed = abs(sum(differences))
    mid = (np.mean(sums > observed + 1e-9) + np.mean(sums >= observed - 1e-9)) / 2
    assert stats.permutation_test(differences) == pytest.approx(mid)
    assert mid < expected.pvalue


def test_permutation_test_by_chance_agrees_with_the_exact_one() -> None:
    """20 differences, over the limit of enumeration: the Monte Carlo p is within its error of the exact one."""
    differences = [0.5] * 13 + [0.75] + [-0.5] * 6
    upwards = np.arange(20)
    sums = np.abs(0.5 * (2 * upwards[:, None] - 19) + 0.75 * np.array([[-1, 1]]))
    beyond = (sums > 4.25 + 1e-9).mean(axis=1) / 2 + (sums >= 4.25 - 1e-9).mean(axis=1) / 2
    exact = float(reference.binom.pmf(upwards, 19, 0.5) @ beyond)
    error = 4 * (exact * (1 - exact) / 99_999) ** 0.5
    assert stats.permutation_test(differences) == pytest.approx(exact, abs=error)


@settings(deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5]), min_size=1, max_size=30))
def test_permutation_test_does_not_depend_on_order_or_on_which_run_comes_first(
    differences: list[float],
) -> None:
    p = stats.permutation_test(differences, flips=999)
    assert 0 < p <= 1
    assert stats.permutation_test(differences[::-1], flips=999) == p
    assert stats.permutation_test([-d for d in differences], flips=999) == p


def test_permutation_test_is_one_where_nothing_differs() -> None:
    assert stats.permutation_test([0.0] * 40) == 1.0


def test_permutation_test_rejects_at_most_five_percent_of_equal_runs() -> None:
    """500 simulated comparisons at n = 20; four standard errors above 5 % is 8.9 %."""
    generator = np.random.default_rng(9)
    differences = generator.choice(PROGRESS, (500, 20)) - generator.choice(PROGRESS, (500, 20))
    rejected = sum(stats.permutation_test(row.tolist(), flips=499) <= 0.05 for row in differences)
    assert rejected / 500 <= 0.089


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_follows_its_definition(p_values: list[float]) -> None:
    """The adjusted p of each hypothesis is the smallest level at which the step-down procedure rejects it."""
    m = len(p_values)
    ranked = sorted(p_values)
    expected = [min(1.0, max((m - i) * q for i, q in enumerate(ranked) if q <= p)) for p in p_values]
    assert stats.holm(p_values) == pytest.approx(expected)


def test_holm_gives_the_textbook_example() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
