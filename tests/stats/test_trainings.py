"""The interval of a mean over trainings: against the definition, at its limits, and by coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from evalharness.stats import rate_interval
from evalharness.stats.trainings import compare_trainings, mean_over_trainings, seed_error


def test_the_variances_are_those_of_a_two_way_analysis() -> None:
    """Mean squares of a table without repeats, by hand: Searle, Casella & McCulloch (1992), section 4.7."""
    draw = np.random.default_rng(3)
    scores = draw.random((4, 7)) + draw.random(4)[:, None]
    count, n = scores.shape
    rows, columns = scores.mean(axis=1), scores.mean(axis=0)
    ms_rows = n * rows.var(ddof=1)
    ms_columns = count * columns.var(ddof=1)
    total = ((scores - scores.mean()) ** 2).sum()
    ms_rest = (total - (count - 1) * ms_rows - (n - 1) * ms_columns) / ((count - 1) * (n - 1))
    found = seed_error([scores])
    assert found.trainings == pytest.approx(ms_rows / (count * n))
    assert found.tasks == pytest.approx(ms_columns / (count * n))
    assert found.attempts == pytest.approx(ms_rest / (count * n))


def test_families_that_differ_are_no_error() -> None:
    draw = np.random.default_rng(4)
    first, second = draw.random((3, 10)), draw.random((3, 20))
    apart, moved = seed_error([first, second]), seed_error([first, second + 5.0])
    assert moved.tasks == pytest.approx(apart.tasks)
    assert moved.trainings == pytest.approx(apart.trainings)


def test_trainings_that_agree_add_nothing_and_no_interval_leaves_the_scale() -> None:
    alike = np.array([[0.0, 1.0, 1.0, 0.0, 1.0]] * 3)
    ends = rate_interval(list(alike.mean(axis=0)), binary=True)
    assert mean_over_trainings(ends, 0.6, [alike]) == pytest.approx(ends)
    apart = np.array([[0.0] * 5, [1.0] * 5])
    assert mean_over_trainings((0.2, 0.8), 0.5, [apart]) == (0.0, 1.0)


@pytest.mark.slow
def test_it_covers_where_trainings_differ_and_the_interval_over_tasks_does_not() -> None:
    """134 tasks, three trainings, a standard deviation of half a logit between them."""
    draw = np.random.default_rng(5)

    def chance(logit: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-logit))

    truth = chance(np.hypot(0.5, 1.5) * draw.standard_normal(500_000)).mean()
    plain = wide = 0
    for _ in range(300):
        logits = 0.5 * draw.standard_normal(3)[:, None] + 1.5 * draw.standard_normal(134)
        scores = (draw.random(logits.shape) < chance(logits)).astype(float)
        ends = rate_interval(list(scores.mean(axis=0)), binary=True)
        low, high = mean_over_trainings(ends, float(scores.mean()), [scores])
        plain += ends[0] <= truth <= ends[1]
        wide += low <= truth <= high
    assert plain < 0.85 * 300
    assert wide > 0.9 * 300


def test_the_p_of_a_difference_is_students_t_over_trainings_and_agrees_with_its_interval() -> None:
    """Tasks that do not vary: the two-sample t test of the trainings' means."""
    first, second = (
        np.tile(np.array(means)[:, None], (1, 9)) for means in ((0.2, 0.3, 0.4), (0.5, 0.6, 0.5))
    )
    test = compare_trainings([first], [second])
    expected = ttest_ind(second.mean(axis=1), first.mean(axis=1))
    ends = (test.difference, test.difference)
    assert test.p(ends) == pytest.approx(expected.pvalue)
    low, high = test.interval(ends)
    assert (low, high) == pytest.approx(tuple(expected.confidence_interval()))
    assert (low > 0) == (test.p(ends) < 0.05)


def test_a_single_training_has_the_spread_of_the_others_and_an_untrained_model_has_none() -> None:
    draw = np.random.default_rng(8)
    first, second = draw.random((3, 30)) + draw.random(3)[:, None], draw.random((1, 30))
    ends = (-0.6, -0.4)
    single, untrained = (compare_trainings([first], [second], alone=alone) for alone in (True, False))
    assert single.p(ends) > untrained.p(ends)


def test_trainings_are_paired_with_themselves() -> None:
    draw = np.random.default_rng(9)
    plain = draw.random((3, 30)) + 3 * draw.random(3)[:, None]
    perturbed = plain - 0.1
    paired = compare_trainings([plain], [perturbed], paired=True)
    apart = compare_trainings([plain], [perturbed])
    assert paired.p((-0.12, -0.08)) < 0.005 < 0.5 < apart.p((-0.12, -0.08))
