"""Tests and intervals against other implementations, published examples, exact enumeration and simulation."""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from progress_shapes import DIFFERENCES, FAMILIES, PROGRESS, RARE, SHAPES
from scipy import stats as reference
from scipy.special import gammaln

from evalharness import stats
from evalharness.stats.kinds import Grouping, inflation_by_kind
from evalharness.stats.score_interval import limits, p_of_no_difference, unseen_pairs

Counts = NDArray[np.float64]


def tables(n: int) -> tuple[Counts, Counts, Counts, Counts]:
    """Every way in which n paired tasks can fall into (both, gained, lost, neither)."""
    listed = np.array(
        [
            (a, b, c, n - a - b - c)
            for a in range(n + 1)
            for b in range(n + 1 - a)
            for c in range(n + 1 - a - b)
        ]
    )
    return tuple(listed.T.astype(float))  # type: ignore[return-value]


def probabilities(cells: tuple[Counts, ...], shares: tuple[float, ...]) -> Counts:
    """Multinomial probability of each table."""
    n = sum(cell[0] for cell in cells)
    log = gammaln(n + 1)
    for cell, share in zip(cells, shares, strict=True):
        log = log - gammaln(cell + 1) + np.where(cell > 0, cell * np.log(max(share, 1e-300)), 0.0)
    return np.exp(log)


PAIRED = [
    (0.30, 0.10, 0.10, 0.50),
    (0.20, 0.25, 0.10, 0.45),
    (0.40, 0.30, 0.05, 0.25),
    (0.10, 0.20, 0.20, 0.50),
    (0.25, 0.25, 0.25, 0.25),
    (0.15, 0.35, 0.15, 0.35),
]
"""Probabilities of (both, gained, lost, neither)."""


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_test_of_the_tasks_that_differ(gained: int, lost: int) -> None:
    expected = reference.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert stats.mcnemar_exact(gained, lost) == pytest.approx(expected)


@pytest.mark.parametrize("n", [20, 60, 112])
def test_mcnemar_rejects_at_most_five_percent_of_equal_runs(n: int) -> None:
    """Exact, over all numbers of differing tasks: the size under the null is never above the level."""
    for discordant in (0.05, 0.2, 0.4, 0.8):
        m = np.arange(n + 1)
        size = 0.0
        for differing, weight in zip(m, reference.binom.pmf(m, n, discordant), strict=True):
            gained = np.arange(differing + 1)
            rejected = stats.mcnemar_exact(gained, differing - gained) <= 0.05
            size += weight * reference.binom.pmf(gained[rejected], differing, 0.5).sum()
        assert size <= 0.05
        assert stats.mcnemar_power(n, discordant, 0.0) == pytest.approx(size, abs=1e-9)


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [((36, 12, 2, 0), 0.0569, 0.3404), ((36, 14, 0, 0), 0.1528, 0.4167), ((0, 0, 0, 30), -0.1135, 0.1135)],
)
def test_newcombe_gives_the_published_examples(
    cells: tuple[int, int, int, int], low: float, high: float
) -> None:
    """Newcombe 1998, table II, method 10."""
    assert stats.newcombe_paired(*cells) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


def test_newcombe_turns_round_when_the_runs_are_exchanged() -> None:
    low, high = stats.newcombe_paired(9, 7, 2, 2)
    assert stats.newcombe_paired(9, 2, 7, 2) == (pytest.approx(-high), pytest.approx(-low))


@pytest.mark.parametrize("n", [20, 40])
def test_newcombe_covers_95_percent_at_small_n(n: int) -> None:
    """Exact coverage, over every possible table: 93 to 97 % on average, and never far off."""
    cells = tables(n)
    low, high = stats.newcombe_paired(*cells)
    coverages = []
    for shares in PAIRED:
        difference = shares[1] - shares[2]
        covered = (low <= difference + 1e-12) & (difference - 1e-12 <= high)
        coverages.append(float(probabilities(cells, shares)[covered].sum()))
    assert 0.93 <= fmean(coverages) <= 0.97
    assert all(0.93 <= coverage <= 0.98 for coverage in coverages), coverages


@pytest.mark.parametrize("n", [20, 60])
def test_wilson_covers_95_percent_at_small_n(n: int) -> None:
    """Exact coverage, averaged over rates from 2 to 98 %."""
    intervals = np.array([stats.wilson(k, n) for k in range(n + 1)])
    coverages = []
    for p in np.linspace(0.02, 0.98, 193):
        covered = (intervals[:, 0] <= p) & (p <= intervals[:, 1])
        coverages.append(float(reference.binom.pmf(np.arange(n + 1), n, p)[covered].sum()))
    assert 0.93 <= fmean(coverages) <= 0.97


@pytest.mark.parametrize("n", [20, 60, 90, 112, 134, 282])
def test_the_interval_of_success_covers_at_every_rate(n: int) -> None:
    """Exact, for rates from 0.02 to 50 %: Wilson's own falls to 84 %, where one success already excludes the rate."""
    intervals = np.array([stats.success_interval(k, n) for k in range(n + 1)])
    for p in np.concatenate([np.linspace(0.0002, 0.02, 50), np.linspace(0.02, 0.5, 100)]):
        covered = (intervals[:, 0] <= p) & (p <= intervals[:, 1])
        assert reference.binom.pmf(np.arange(n + 1), n, p)[covered].sum() >= 0.92, p


def coverage(ends: tuple[Counts, Counts], truth: float) -> float:
    low, high = ends
    return float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))


@pytest.mark.parametrize("n", [20, 60, 90, 112, 134, 282])
@pytest.mark.parametrize("shape", FAMILIES)
def test_the_interval_of_progress_covers_95_percent(n: int, shape: str) -> None:
    """3,000 simulated families. Few tasks off an end, or all of them alike, say little of how large another may be:
    there the interval errs on the wide side."""
    values, shares = FAMILIES[shape]
    drawn = np.random.default_rng(7).choice(values, (3000, n), p=shares)
    found = coverage(limits([drawn]), float(values @ shares))
    off_the_end = n * (1 - max(shares))
    assert 0.93 <= found <= (0.972 if off_the_end > 15 else 1.0)
    if shape in RARE and shape not in WIDE:
        assert found <= 0.995


WIDE = ("3 % above 0, all at 0.1",)


def test_the_interval_is_the_same_one_by_one_and_in_bulk() -> None:
    drawn = np.random.default_rng(7).choice(PROGRESS, (50, 30))
    low, high = limits([drawn])
    ends = np.array([stats.score_mean(row) for row in drawn.tolist()])
    assert ends[:, 0] == pytest.approx(low)
    assert ends[:, 1] == pytest.approx(high)


@pytest.mark.parametrize("rate", [0.0, 0.002, 0.005, 0.01, 0.02, 0.025, 0.2])
def test_the_held_out_interval_covers_at_the_edge(rate: float) -> None:
    """282 tasks in four families; the bootstrap had no width at 0 and covered 42 % at 0.2 %."""
    generator = np.random.default_rng(8)
    covered = 0
    for _ in range(600):
        strata = [(generator.random(n) < rate).astype(float).tolist() for n in (112, 90, 60, 20)]
        for low, high in (stats.held_out_interval(strata, binary=True), stats.stratified_score(strata)):
            assert low < high
            covered += low <= rate <= high
    assert covered / 1200 >= 0.925


def test_the_held_out_interval_of_success_counts_all_tasks_together() -> None:
    strata = [[1.0] * 51 + [0.0] * 61, [1.0] * 7 + [0.0] * 83, [1.0] * 6 + [0.0] * 54, [0.0] * 20]
    assert stats.held_out_interval(strata, binary=True) == stats.wilson(64, 282)
    assert stats.held_out_interval([[0.0] * 90, [0.0] * 20], binary=True) == stats.wilson(0, 110)


def test_differences_between_families_are_no_error_of_the_held_out_score() -> None:
    strata = [[0.0, 0.1] * 50, [0.9, 1.0] * 50]
    apart, mixed = stats.stratified_score(strata), stats.score_mean([v for s in strata for v in s])
    assert apart[1] - apart[0] < 0.5 * (mixed[1] - mixed[0])


@pytest.mark.parametrize("n", [20, 60, 90, 112, 134, 282])
@pytest.mark.parametrize("shape", DIFFERENCES)
def test_the_interval_of_a_difference_covers_95_percent(n: int, shape: str) -> None:
    values, shares = DIFFERENCES[shape]
    places = [(np.random.default_rng(9).choice(values, (3000, n), p=shares) + 1) / 2]
    found = coverage(limits(places, unseen=unseen_pairs(places)), (float(values @ shares) + 1) / 2)
    assert 0.92 <= found <= (0.972 if n * (1 - max(shares)) > 40 else 1.0)


def test_runs_that_do_not_differ_leave_room_for_tasks_that_would() -> None:
    for n, reach in ((20, 0.13), (282, 0.01)):
        low, high = stats.score_difference([[0.0] * n])
        assert -low == pytest.approx(high)
        assert high == pytest.approx(reach, rel=0.1)
    low, high = stats.score_difference([[1.0] * 20])
    assert 0.6 < low < high == 1.0


LAYOUTS = {
    "BabyAI": [4] * 28,
    "ScienceWorld": [1, 3, 3, 3, 4, 4, 5, 6, 6, 6, 6, 8, 8, 9, 9, 9],
    "PDDL": [10, 10, 20, 20],
}


@pytest.mark.parametrize("family", LAYOUTS)
def test_kinds_that_are_alike_do_not_make_a_difference_significant(family: str) -> None:
    """Kinds that gain and kinds that lose, equal on the whole: over tasks McNemar rejects 9 to 31 %, its interval
    covers 62 to 88 %; over kinds at most 5 % (and sampling error), and 94 % or more."""
    generator = np.random.default_rng(10)
    kinds = np.repeat(np.arange(len(LAYOUTS[family])), LAYOUTS[family])
    values = np.zeros((400, len(kinds)))
    for row in values:
        tilt = np.clip(generator.normal(0.5, 0.5, len(LAYOUTS[family])), 0, 1)[kinds]
        signs = np.where(generator.random(len(kinds)) < tilt, 1.0, -1.0)
        row[:] = np.where(generator.random(len(kinds)) < 0.4, signs, 0.0)
    mcnemar = stats.mcnemar_exact((values > 0).sum(axis=1), (values < 0).sum(axis=1))
    assert np.mean(mcnemar <= 0.05) > 0.07
    grouping = Grouping.of(kinds.tolist())
    inflation, freedom = inflation_by_kind([values], [grouping])
    places = [(values + 1) / 2]
    wide = limits(places, inflation=inflation, freedom=freedom, unseen=unseen_pairs(places))
    assert coverage(wide, 0.5) >= 0.93
    assert coverage(limits(places, unseen=unseen_pairs(places)), 0.5) < 0.92
    if grouping.kinds >= stats.ENOUGH_KINDS:
        p = [stats.permutation_test(row.tolist(), flips=499) for row in values @ grouping.member]
    else:
        p = p_of_no_difference([values], inflation=inflation, freedom=freedom)
    assert np.mean(np.asarray(p) <= 0.05) <= 0.075


def test_degrees_of_freedom_are_kinds_less_one_and_fewer_where_few_kinds_have_most_tasks() -> None:
    assert Grouping.of([i // 4 for i in range(112)]).freedom == pytest.approx(27)
    assert 1 < Grouping.of(["a"] * 50 + ["b"] * 5 + ["c"] * 5).freedom < 2


def test_few_kinds_get_a_t_test_and_one_kind_none() -> None:
    deltas = [0.0, 0.5, 0.25, 0.5, 0.0, 0.5, 0.25, 0.75]
    assert stats.difference_test_by_kind([deltas], [["a"] * 8]) is None
    assert stats.score_difference_by_kind([deltas], [["a"] * 8]) is None
    assert stats.score_mean_by_kind([deltas, deltas], [["a"] * 8, list("abababab")]) is None
    p, test = stats.difference_test_by_kind([deltas], [list("aabbccdd")]) or (0, "")
    assert test == "t"
    low, high = stats.score_difference_by_kind([deltas], [list("aabbccdd")]) or (0, 0)
    assert (p < 0.05) == (not low <= 0 <= high)
    p, test = stats.difference_test_by_kind([deltas], [list("abcdefgh")]) or (0, "")
    assert (p, test) == (stats.permutation_test(deltas), "permutation")


@given(st.randoms())
def test_by_kind_nothing_depends_on_the_order_of_the_tasks(random: Random) -> None:
    pairs = [(round(0.1 * (i % 7), 1), "abcdefg"[i % 5]) for i in range(30)]
    shuffled = random.sample(pairs, len(pairs))

    def found(listed: list[tuple[float, str]]) -> tuple[object, ...]:
        strata, kinds = [[v for v, _ in listed]], [[k for _, k in listed]]
        return (
            stats.score_mean_by_kind(strata, kinds),
            stats.score_difference_by_kind(strata, kinds),
            stats.difference_test_by_kind(strata, kinds),
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


def test_the_interval_of_progress_is_wilsons_for_many_tasks_solved_or_not() -> None:
    values = [1.0] * 300 + [0.0] * 700
    assert stats.score_mean(values) == pytest.approx(stats.wilson(300, 1000), abs=2e-4)
    assert stats.rate_interval(values, binary=True) == stats.wilson(300, 1000)
    assert stats.rate_interval([0.0] * 20, binary=True) == stats.wilson(0, 20)
    assert stats.success_interval(1, 20)[0] < stats.wilson(1, 20)[0]
    assert stats.success_interval(1, 20)[1] == stats.wilson(1, 20)[1]
    assert stats.score_mean([1.0] + [0.0] * 19) == pytest.approx(stats.success_interval(1, 20))
    assert stats.score_mean([0.0] * 20) == pytest.approx(stats.wilson(0, 20))
    assert stats.score_mean([1.0]) == pytest.approx(stats.wilson(1, 1))
    assert stats.rate_interval([0.5, 1.0], binary=True) == stats.score_mean([0.5, 1.0])


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]), min_size=1, max_size=40), st.randoms()
)
def test_the_interval_of_progress_holds_its_mean_and_does_not_depend_on_order(
    values: list[float], random: Random
) -> None:
    low, high = stats.score_mean(values)
    assert 0 <= low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= high <= 1
    shuffled = random.sample(values, len(values))
    assert stats.score_mean(shuffled) == (low, high)
    mirrored = stats.score_mean([1 - value for value in values])
    assert mirrored == pytest.approx((1 - high, 1 - low))


def test_what_is_no_fraction_has_no_interval() -> None:
    for values in ([], [-0.1], [0.5, 1.1]):
        with pytest.raises(ValueError, match="fractions"):
            stats.score_mean(values)


@pytest.mark.parametrize("shape", ["mostly low", "mostly high"])
def test_bootstrap_covers_95_percent_at_the_size_of_jericho(shape: str) -> None:
    """2,000 simulated families of 20 tasks, where most tasks are not at one end."""
    generator = np.random.default_rng(7)
    truth = float(PROGRESS @ SHAPES[shape])
    covered = 0
    for _ in range(2000):
        values = generator.choice(PROGRESS, 20, p=SHAPES[shape]).tolist()
        low, high = stats.bootstrap_mean(values, resamples=2000)
        covered += low <= truth <= high
    assert 0.93 <= covered / 2000 <= 0.97


def test_stratified_bootstrap_covers_95_percent() -> None:
    """Four families with rates of their own, weighted by size, as the held-out score (at a fifth of its size)."""
    generator = np.random.default_rng(8)
    sizes, rates = (22, 18, 12, 20), (0.45, 0.2, 0.3, 0.25)
    truth = sum(n * p for n, p in zip(sizes, rates, strict=True)) / sum(sizes)
    covered = 0
    for _ in range(1000):
        strata = [(generator.random(n) < p).astype(float).tolist() for n, p in zip(sizes, rates, strict=True)]
        low, high = stats.bootstrap_weighted_mean(strata, sizes, resamples=2000)
        covered += low <= truth <= high
    assert 0.93 <= covered / 1000 <= 0.97


def test_bootstrap_of_several_values_is_wider_than_the_plain_percentile_interval() -> None:
    values = [0.0, 0.1, 0.2, 0.3, 0.9]
    plain = reference.bootstrap(
        (values,), np.mean, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    low, high = stats.bootstrap_mean(values)
    assert low <= plain.low
    assert high >= plain.high


def test_permutation_test_agrees_with_scipy() -> None:
    differences = [0.25, -0.5, 0.75, 0.5, 0.25, 0.5, -0.25, 1.0, 0.125]
    expected = reference.permutation_test(
        (differences,), lambda x: np.sum(x), permutation_type="samples", n_resamples=np.inf
    )
    assert stats.permutation_test(differences) == pytest.approx(expected.pvalue)


def test_permutation_test_by_chance_agrees_with_the_exact_one() -> None:
    """20 differences, over the limit of enumeration: the Monte Carlo p is within its error of the exact one."""
    differences = [0.5] * 14 + [-0.5] * 6
    exact = reference.binomtest(14, 20).pvalue  # equal sizes: the signs alone count
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
