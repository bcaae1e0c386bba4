"""Which differences could be found, and Best-of-N, against simulation and enumeration."""

from __future__ import annotations

from itertools import combinations, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_shapes import PROGRESS
from scipy import stats as reference

from evalharness import stats


def test_mcnemar_power_agrees_with_simulation() -> None:
    generator = np.random.default_rng(10)
    n, discordant, difference = 112, 0.3, 0.15
    shares = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    draws = generator.multinomial(n, shares, size=20_000)
    rejected = float(np.mean(stats.mcnemar_exact(draws[:, 0], draws[:, 1]) <= 0.05))
    assert stats.mcnemar_power(n, discordant, difference) == pytest.approx(rejected, abs=0.014)


@pytest.mark.parametrize(("n", "discordant"), [(20, 0.2), (60, 0.3), (112, 0.25), (282, 0.2), (20, 0.0)])
def test_the_detectable_difference_has_eighty_percent_power(n: int, discordant: float) -> None:
    found = stats.detectable_success_difference(n, discordant)
    assert found is not None
    assert stats.mcnemar_power(n, max(discordant, found), found) == pytest.approx(0.8, abs=0.001)


def test_no_success_difference_is_detectable_with_five_tasks() -> None:
    """Five of five gained have p = 0.0625."""
    assert stats.detectable_success_difference(5, 1.0) is None
    assert stats.detectable_success_difference(6, 1.0) is not None


def test_the_detectable_mean_difference_has_eighty_percent_power() -> None:
    generator = np.random.default_rng(11)
    sample = generator.normal(0, 1, 40)
    found = stats.detectable_mean_difference((0.3 * sample / sample.std(ddof=1)).tolist())
    assert found is not None
    draws = generator.normal(found, 0.3, (20_000, 40))
    power = float(np.mean(reference.ttest_1samp(draws, 0, axis=1).pvalue <= 0.05))
    assert power == pytest.approx(0.8, abs=0.015)
    assert stats.detectable_mean_difference([0.25] * 10) is None


def test_no_mean_difference_is_detectable_where_none_can_be() -> None:
    """No difference is above 100 points, and five differences have no p below 2/32 whatever their signs."""
    assert stats.detectable_mean_difference([1.0, -1.0] * 3) is None
    assert stats.permutation_test([1.0] * 5) > 0.05
    assert stats.detectable_mean_difference([0.1, 0.11, 0.12, 0.1, 0.11]) is None
    found = stats.detectable_mean_difference([0.1, 0.11, 0.12, 0.1, 0.11, 0.12])
    assert found is not None
    assert found < 0.05


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
    with pytest.raises(ValueError, match="cannot be drawn"):
        stats.pass_at_k(4, 2, 5)
