"""Which differences could be found, and Best-of-N, against simulation and enumeration."""

from __future__ import annotations

from itertools import combinations, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_shapes import PROGRESS

from evalharness import stats


def test_mcnemar_power_agrees_with_simulation() -> None:
    generator = np.random.default_rng(10)
    n, discordant, difference = 112, 0.3, 0.15
    shares = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    draws = generator.multinomial(n, shares, size=20_000)
    rejected = float(np.mean(stats.mcnemar_midp(draws[:, 0], draws[:, 1]) <= 0.05))
    assert stats.mcnemar_power(n, discordant, difference) == pytest.approx(rejected, abs=0.014)


@pytest.mark.parametrize(("n", "changed"), [(20, 4), (60, 18), (112, 28), (282, 56), (20, 0)])
def test_the_detectable_difference_of_success_has_eighty_percent_power(n: int, changed: int) -> None:
    found = stats.detectable_difference(
        [1.0] * (changed - changed // 3) + [-1.0] * (changed // 3) + [0.0] * (n - changed)
    )
    assert found is not None
    assert stats.mcnemar_power(n, max(changed / n, found), found) == pytest.approx(0.8, abs=0.001)


@pytest.mark.parametrize(("discordant", "difference"), [(0.05, 0.05), (0.2, 0.04), (0.5, 0.3)])
def test_so_many_tasks_have_eighty_percent_power(discordant: float, difference: float) -> None:
    needed = stats.tasks_needed(discordant, difference)
    assert needed is not None
    assert stats.mcnemar_power(needed, discordant, difference) == pytest.approx(0.8, abs=0.03)
    assert stats.tasks_needed(0.2, 0.001) is None


def test_no_difference_is_detectable_with_four_tasks() -> None:
    """Four of four gained have mid-p 0.0625."""
    assert stats.detectable_difference([1.0] * 4) is None
    assert stats.detectable_difference([1.0] * 5) is not None


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(0.25, 0.5, 1.0), (0.1, 0.1, 1.0)])
def test_the_detectable_difference_of_progress_has_eighty_percent_power(sizes: tuple[float, ...]) -> None:
    """30 % of 112 tasks change. As much change, more of it upwards: the permutation test finds that in 80 %."""
    generator = np.random.default_rng(11)
    shares = np.array([0.7, *[0.1] * 3])
    sample = generator.choice([0.0, *sizes], (400, 112), p=shares)
    found = np.mean([stats.detectable_difference(row.tolist()) for row in sample])
    upwards = (1 + found / float(shares[1:] @ np.array(sizes))) / 2
    signs = np.where(generator.random(sample.shape) < upwards, 1.0, -1.0)
    p = [stats.permutation_test(row.tolist(), flips=999) for row in sample * signs]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.8, abs=0.06)


def test_the_detectable_difference_of_unequal_attempts_has_eighty_percent_power() -> None:
    generator = np.random.default_rng(12)
    level = 0.4

    def attempts(count: int, gain: float) -> list[list[float]]:
        return (generator.random((60, count)) < level + gain).astype(float).tolist()

    found = stats.detectable_by_attempts(attempts(1, 0.0), attempts(5, 0.0))
    assert found is not None
    p = [stats.attempts_test(attempts(1, 0.0), attempts(5, found), resamples=399) for _ in range(300)]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.8, abs=0.08)
    assert stats.detectable_by_attempts([[1.0]] * 3, [[1.0, 1.0]] * 3) is None


@settings(deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(
            st.lists(st.sampled_from(PROGRESS.tolist()), min_size=n, max_size=n), st.integers(1, n)
        )
    )
)
def test_best_of_k_is_the_mean_over_all_subsets(case: tuple[list[float], int]) -> None:
    values, k = case
    subsets = list(combinations(values, k))
    n, solved = len(values), sum(v == 1.0 for v in values)
    assert stats.expected_best_of_k(values, k) == pytest.approx(fmean(max(s) for s in subsets))
    assert stats.pass_at_k(n, solved, k) == pytest.approx(fmean(1.0 in s for s in subsets))
    assert stats.pass_hat_k(n, solved, k) == pytest.approx(fmean(all(v == 1.0 for v in s) for s in subsets))


def test_best_of_k_takes_a_value_a_task() -> None:
    samples = np.array(list(product([0.0, 1.0], repeat=4)))
    solved = samples.sum(axis=1)
    for k in range(1, 5):
        assert stats.expected_best_of_k(samples, k) == pytest.approx(stats.pass_at_k(4, solved, k))
        assert (stats.pass_hat_k(4, solved, k) <= stats.pass_at_k(4, solved, k) + 1e-12).all()
    with pytest.raises(ValueError, match="drawn"):
        stats.pass_at_k(4, 2, 5)
