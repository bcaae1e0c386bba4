"""The interval of a mean over trainings: against the definition, at its limits, and by coverage."""

from __future__ import annotations

import numpy as np
import pytest

from evalharness.stats import rate_interval
from evalharness.stats.trainings import over_trainings, seed_error


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
    error = seed_error([alike])
    assert over_trainings(ends, 0.6, [error], error.tasks, (0.0, 1.0)) == pytest.approx(ends)
    apart = np.array([[0.0] * 5, [1.0] * 5])
    error = seed_error([apart])
    assert over_trainings((0.2, 0.8), 0.5, [error], error.tasks, (0.0, 1.0)) == (0.0, 1.0)


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
        error = seed_error([scores])
        low, high = over_trainings(ends, float(scores.mean()), [error], error.tasks, (0.0, 1.0))
        plain += ends[0] <= truth <= ends[1]
        wide += low <= truth <= high
    assert plain < 0.85 * 300
    assert wide > 0.9 * 300
