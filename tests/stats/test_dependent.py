"""Tasks of one kind, and attempts at one task, are not independent."""

from __future__ import annotations

from itertools import combinations
from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalharness import stats
from evalharness.stats.kinds import Grouping, inflation_by_kind
from evalharness.stats.score_interval import count_unseen_pairs, limits, p_of_no_difference

from .counts import coverage

LAYOUTS = {
    "BabyAI": [4] * 28,
    "ScienceWorld": [1, 3, 3, 3, 4, 4, 5, 6, 6, 6, 6, 8, 8, 9, 9, 9],
    "PDDL": [10, 10, 20, 20],
}


@pytest.mark.parametrize("family", LAYOUTS)
def test_kinds_that_are_alike_do_not_make_a_difference_significant(family: str) -> None:
    """Kinds that gain and kinds that lose, equal on the whole: over tasks McNemar rejects 9 to 33 %; over kinds at most
    6 % (and sampling error), and the interval covers 94 % or more."""
    generator = np.random.default_rng(10)
    kinds = np.repeat(np.arange(len(LAYOUTS[family])), LAYOUTS[family])
    values = np.zeros((400, len(kinds)))
    for row in values:
        tilt = np.clip(generator.normal(0.5, 0.5, len(LAYOUTS[family])), 0, 1)[kinds]
        signs = np.where(generator.random(len(kinds)) < tilt, 1.0, -1.0)
        row[:] = np.where(generator.random(len(kinds)) < 0.4, signs, 0.0)
    mcnemar = stats.mcnemar_midp((values > 0).sum(axis=1), (values < 0).sum(axis=1))
    assert np.mean(mcnemar <= 0.05) > 0.07
    grouping = Grouping.of(kinds.tolist())
    inflation, freedom = inflation_by_kind([values], [grouping])
    places = [(values + 1) / 2]
    wide = limits(places, inflation=inflation, freedom=freedom, unseen=count_unseen_pairs(places))
    assert coverage(wide, 0.5) >= 0.93
    p = p_of_no_difference([values], inflation=inflation, freedom=freedom)
    assert np.mean(np.asarray(p) <= 0.05) <= 0.075


def test_degrees_of_freedom_are_kinds_less_one_and_fewer_where_few_kinds_have_most_tasks() -> None:
    assert Grouping.of([i // 4 for i in range(112)]).freedom == pytest.approx(27)
    assert 1 < Grouping.of(["a"] * 50 + ["b"] * 5 + ["c"] * 5).freedom < 2


def test_a_stratum_of_one_kind_has_no_answer_by_kind() -> None:
    deltas = [0.0, 0.5, 0.25, 0.5, 0.0, 0.5, 0.25, 0.75]
    assert stats.difference_p_by_kind([deltas], [["a"] * 8]) is None
    assert stats.score_difference_by_kind([deltas], [["a"] * 8]) is None
    assert stats.score_mean_by_kind([deltas, deltas], [["a"] * 8, list("abababab")]) is None


@given(
    st.lists(st.tuples(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), st.sampled_from("abcdef")), min_size=2)
)
def test_by_kind_interval_and_p_agree(pairs: list[tuple[float, str]]) -> None:
    strata, kinds = [[d for d, _ in pairs]], [[kind for _, kind in pairs]]
    p, interval = stats.difference_p_by_kind(strata, kinds), stats.score_difference_by_kind(strata, kinds)
    assert (p is None) == (interval is None)
    if p is not None and interval is not None:
        assert (p < 0.05) == (not interval[0] <= 0 <= interval[1])


def test_six_kinds_can_be_significant() -> None:
    """ALFWorld: flipping the signs of six kinds has no p below 0.031, and none below 0.05 after Holm's correction."""
    kinds = [kind for kind, n in enumerate((17, 18, 21, 23, 24, 31)) for _ in range(n)]
    gained = [1.0 if i % 2 else 0.0 for i in range(134)]
    p = stats.difference_p_by_kind([gained], [kinds])
    assert p is not None
    assert p < 0.001


@given(st.randoms())
def test_by_kind_nothing_depends_on_the_order_of_the_tasks(random: Random) -> None:
    pairs = [(round(0.1 * (i % 7), 1), "abcdefg"[i % 5]) for i in range(30)]
    shuffled = random.sample(pairs, len(pairs))

    def found(listed: list[tuple[float, str]]) -> tuple[object, ...]:
        strata, kinds = [[v for v, _ in listed]], [[k for _, k in listed]]
        return (
            stats.score_mean_by_kind(strata, kinds),
            stats.score_difference_by_kind(strata, kinds),
            stats.difference_p_by_kind(strata, kinds),
        )

    assert found(pairs) == found(shuffled)


def test_one_attempt_against_ten_is_tested_by_dealing_attempts_again() -> None:
    """20 tasks that an attempt solves at 5 %, in both runs. Flipping signs rejects a third of such equal runs."""
    generator = np.random.default_rng(11)
    signs = dealt = 0
    for _ in range(300):
        one = (generator.random((20, 1)) < 0.05).astype(float)
        ten = (generator.random((20, 10)) < 0.05).astype(float)
        deltas = (ten.mean(axis=1) - one.mean(axis=1)).tolist()
        signs += stats.permutation_test(deltas, flips=199) <= 0.05
        dealt += stats.attempts_test(one.tolist(), ten.tolist(), resamples=199) <= 0.05
    assert signs / 300 > 0.2
    assert dealt / 300 <= 0.05


def test_dealing_attempts_finds_a_difference_and_is_exact_for_one_task() -> None:
    assert stats.attempts_test([[0.0]] * 20, [[1.0] * 10] * 20) < 0.001
    # 2 of the 11 attempts solve it; that the single one is such a one has probability 2 / 11.
    p = stats.attempts_test([[1.0]], [[1.0] + [0.0] * 9])
    assert p == pytest.approx(2 / 11, abs=0.02)
    assert stats.attempts_test([[0.5]] * 3, [[0.5, 0.5]] * 3) == 1.0
    several = stats.attempts_test([[0.1, 0.5, 0.9]] * 2, [[0.2, 0.3]] * 2, resamples=4999)
    sums = [sum(c) for c in combinations([0.1, 0.5, 0.9, 0.2, 0.3], 3)]
    means = [(2.0 - s) / 2 - s / 3 for s in sums]
    exact = fmean(abs(a + b) >= abs(2 * (0.25 - 0.5)) - 1e-9 for a in means for b in means)
    assert several == pytest.approx(exact, abs=0.03)


def test_the_variance_components_are_those_that_were_put_in() -> None:
    generator = np.random.default_rng(12)
    tasks = [generator.normal(mean, 0.2, (2000, 1)) for mean in (0.3, 0.6)]
    attempts = [(t + generator.normal(0, 0.1, (2000, 4))).tolist() for t in tasks]
    found = stats.variance_components(attempts)
    assert found is not None
    assert (found.repeats, found.between_task, found.between_run) == (
        pytest.approx(4),
        pytest.approx(0.2, rel=0.05),
        pytest.approx(0.1, rel=0.05),
    )
    assert found.standard_error_tasks == pytest.approx(0.2 / 4000**0.5, rel=0.05)
    assert found.standard_error_runs == pytest.approx(0.1 / 16000**0.5, rel=0.05)
    assert stats.variance_components([[[0.1], [0.2], [0.5]]]) is None
    equal = stats.variance_components([[[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]])
    assert equal is not None
    assert equal.between_task == 0.0
