"""Measure how often the 95 % intervals contain the true value, and how often the tests reject equal runs.

`python benchmarks/coverage.py` computes the tables of results/coverage/README.md in ten minutes, with a fixed
seed. The standard error of a coverage near 95 % is 0.5 points with 2,000 simulations, 0.2 with `--simulations 10000`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from progress_shapes import DIFFERENCES, FAMILIES, RARE, Distribution
from scipy.special import gammaln
from scipy.stats import binom

from evalharness import stats
from evalharness.stats.intervals import expand_tail
from evalharness.stats.kinds import Grouping, inflation_by_kind
from evalharness.stats.score_interval import UNSEEN, count_unseen_pairs, limits, p_of_no_difference

Array = NDArray[np.float64]
SIZES = (20, 60, 90, 112, 134, 282)
"""Tasks of Jericho, PDDL, ScienceWorld, BabyAI, ALFWorld, and of the held-out score."""
HELD_OUT = (112, 90, 60, 20)
KINDS = {
    "BabyAI": [4] * 28,
    "ScienceWorld": [1, 3, 3, 3, 4, 4, 5, 6, 6, 6, 6, 8, 8, 9, 9, 9],
    "PDDL": [10, 10, 20, 20],
    "ALFWorld": [17, 18, 21, 23, 24, 31],
    "Jericho": [1] * 20,
}
"""Tasks of each kind in the published suite."""
PAIRS = (
    (0.01, 0.01),
    (0.02, 0.0),
    (0.02, 0.01),
    (0.05, 0.0),
    (0.05, 0.03),
    (0.1, 0.0),
    (0.1, 0.05),
    (0.2, 0.05),
    (0.2, 0.2),
    (0.4, 0.0),
)
"""Shares of tasks solved by (the second alone, the first alone)."""
HELD_OUT_RATES = (
    (0.4, 0.14, 0.17, 0.1),
    (0.48, 0.4, 0.62, 0.1),
    (0.9, 0.1, 0.9, 0.1),
    (0.0, 0.0, 0.1, 0.0),
    (0.0, 0.0, 0.5, 0.0),
    (0.0, 0.0, 0.9, 0.0),
    (0.9, 0.0, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.5),
    (1.0, 1.0, 0.5, 1.0),
)
"""True success of BabyAI, ScienceWorld, PDDL and Jericho."""
BEST_OF_N: dict[str, Distribution] = {
    "delta, 5 % gain": (np.array([0, 0.25, 0.5, 1]), np.array([0.95, 0.02, 0.015, 0.015])),
    "delta, 20 % gain": (np.array([0, 0.25, 0.33, 0.5, 1]), np.array([0.8, 0.06, 0.03, 0.05, 0.06])),
    "delta, 40 % gain, 4 % lose": (
        np.array([0, 0.25, 0.33, 0.5, 1, -0.25, -0.5]),
        np.array([0.56, 0.1, 0.05, 0.1, 0.15, 0.03, 0.01]),
    ),
}
"""Progress of the best of N less that of the greedy attempt."""


def table(title: str, columns: Iterable[object], rows: Iterable[tuple[str, Iterable[float]]]) -> None:
    print(f"\n{title}")
    print(" " * 32 + "".join(f"{column!s:>10}" for column in columns))
    for name, values in rows:
        print(f"{name:32}" + "".join(f"{100 * value:10.1f}" for value in values), flush=True)


def covered(ends: tuple[Any, Any], truth: float) -> float:
    low, high = ends
    return float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))


def draw(distribution: Distribution, shape: tuple[int, ...], seed: int = 1) -> Array:
    values, shares = distribution
    return np.random.default_rng(seed).choice(values, shape, p=shares)


def truth(distribution: Distribution) -> float:
    return float(distribution[0] @ distribution[1])


def wilson_coverage(n: int, rate: float) -> float:
    """Exact."""
    return success_coverage(n, rate, stats.wilson)


def success_coverage(
    n: int, rate: float, interval: Callable[[int, int], stats.Interval] = stats.success_interval
) -> float:
    """Exact."""
    held = [low <= rate <= high for low, high in (interval(k, n) for k in range(n + 1))]
    return float(binom.pmf(np.arange(n + 1), n, rate)[held].sum())


@cache
def _paired_intervals(n: int, most: int) -> tuple[Array, ...]:
    """(gained, lost, low, high) of n paired tasks of which `most` change at most."""
    counts = np.array([(gained, m - gained) for m in range(most + 1) for gained in range(m + 1)])
    p = stats.mcnemar_midp(counts[:, 0], counts[:, 1])
    ends = [
        stats.paired_interval([[1.0] * b + [-1.0] * c + [0.0] * (n - b - c)], each)
        for (b, c), each in zip(counts.tolist(), p.tolist(), strict=True)
    ]
    return tuple(np.column_stack([counts, ends]).T)


def paired_coverage(n: int, gains: float, losses: float) -> float:
    """Exact, but for outcomes with more changes than a ten-thousandth of all have; those count as not covered."""
    gained, lost, low, high = _paired_intervals(n, int(binom.ppf(0.9999, n, gains + losses)))
    log = gammaln(n + 1)
    for cell, share in ((gained, gains), (lost, losses), (n - gained - lost, 1 - gains - losses)):
        log = log - gammaln(cell + 1) + np.where(cell > 0, cell * np.log(max(share, 1e-300)), 0.0)
    held = (low <= gains - losses + 1e-9) & (gains - losses - 1e-9 <= high)
    return float(np.exp(log)[held].sum())


def one_family(simulations: int) -> None:
    for name, coverage in (
        ("Wilson alone", wilson_coverage),
        ("Wilson, moved near the edge", success_coverage),
    ):
        table(
            f"Success: {name}, exact coverage %, by the true rate (n = tasks)",
            SIZES,
            (
                (f"{rate:.1%}", [coverage(n, rate) for n in SIZES])
                for rate in (0.002, 0.005, 0.01, 0.02, 0.025, 0.05, 0.2, 0.5)
            ),
        )
    table(
        "Progress of a family: score interval, coverage % (n = tasks)",
        SIZES,
        (
            (name, [covered(limits([draw(shape, (simulations, n))]), truth(shape)) for n in SIZES])
            for name, shape in FAMILIES.items()
        ),
    )


def stratified_bootstrap(strata: Sequence[Array]) -> Array:
    """95 % limits of the mean over all tasks, each family resampled within itself: once the held-out score's."""
    generator = np.random.default_rng(20_250_101)
    total = np.zeros(1000)
    for values in strata:
        draws = generator.integers(0, len(values), size=(1000, len(values)))
        total += len(values) * values[draws].mean(axis=1)
    tail = expand_tail(strata, [len(values) for values in strata], 0.025)
    return np.asarray(np.quantile(total / sum(map(len, strata)), [tail, 1 - tail]))


def held_out(simulations: int) -> None:
    """Families of 112, 90, 60 and 20 tasks."""
    few = max(100, simulations // 10)

    def rates(rate: float) -> list[float]:
        generator = np.random.default_rng(3)
        strata = [(generator.random((simulations, n)) < rate).astype(float) for n in HELD_OUT]
        bootstrap = [stratified_bootstrap([np.sort(s[i]) for s in strata]) for i in range(few)]
        old = covered(tuple(np.array(bootstrap).T), rate)
        return [covered(limits(strata), rate), old]

    table(
        f"Held-out success, by the true rate in every family (bootstrap: {few} simulations)",
        ("strata", "bootstrap"),
        ((f"{rate:.1%}", rates(rate)) for rate in (0.002, 0.005, 0.01, 0.02, 0.025, 0.05, 0.2)),
    )

    def unequal(rates: Sequence[float]) -> list[float]:
        generator = np.random.default_rng(3)
        strata = [
            (generator.random((10 * simulations, n)) < rate).astype(float)
            for n, rate in zip(HELD_OUT, rates, strict=True)
        ]
        expected = float(np.dot(HELD_OUT, rates)) / sum(HELD_OUT)
        pooled = np.array([stats.success_interval(k, 282) for k in range(283)])
        ends = pooled[np.sum([stratum.sum(axis=1) for stratum in strata], axis=0).astype(int)].T
        return [covered(limits(strata), expected), covered((ends[0], ends[1]), expected)]

    table(
        "Held-out success, unequal rates (BabyAI, ScienceWorld, PDDL, Jericho), coverage %",
        ("strata", "pooled"),
        ((" ".join(f"{rate:.0%}" for rate in rates), unequal(rates)) for rates in HELD_OUT_RATES),
    )
    names = list(FAMILIES)
    mixtures: list[tuple[str, ...]] = [(name,) * 4 for name in (*RARE, "90 % at 0", "many small steps")]
    mixtures += [tuple(names[(i + 3 * j) % len(names)] for j in range(4)) for i in range(len(names))]

    def mixture(chosen: tuple[str, ...]) -> float:
        strata = [
            draw(FAMILIES[name], (simulations, n), seed=10 + j)
            for j, (name, n) in enumerate(zip(chosen, HELD_OUT, strict=True))
        ]
        expected = sum(n * truth(FAMILIES[name]) for name, n in zip(chosen, HELD_OUT, strict=True)) / 282
        return covered(limits(strata), expected)

    found = {" | ".join(dict.fromkeys(chosen)): mixture(chosen) for chosen in mixtures}
    table(
        "Held-out progress: stratified score interval, coverage %", [""], ((k, [v]) for k, v in found.items())
    )


def pooled(simulations: int) -> None:
    """`pooled`: several families without a held-out score, success and fractions."""
    generator = np.random.default_rng(3)
    rows = []
    for sizes in ((5,) * 5, (10,) * 5, (20,) * 5, (4, 8), (40, 40), (134, 112), (134, 112, 90, 60, 20)):
        for rates in ((0.02, 0.02), (0.1, 0.1), (0.02, 0.3), (0.3, 0.3), (0.5, 0.05)):
            listed = [rates[i % 2] for i in range(len(sizes))]
            true = float(np.dot(sizes, listed)) / sum(sizes)
            held = []
            for steps in (1, 4):
                hits = 0
                for _ in range(simulations):
                    values = [
                        generator.binomial(steps, r, n) / steps for n, r in zip(sizes, listed, strict=True)
                    ]
                    parts = [
                        (len(v), float(v.mean()), stats.rate_interval(v.tolist(), binary=True))
                        for v in values
                    ]
                    low, high = stats.pooled_interval(parts)
                    hits += low <= true <= high
                held.append(hits / simulations)
            rows.append((f"{'+'.join(map(str, sizes))}, {100 * rates[0]:g} and {100 * rates[1]:g} %", held))
    table("pooled rate, families of these sizes and rates", ("success", "progress"), rows)


def differences(simulations: int) -> None:
    few = max(200, simulations // 5)

    def coverage(shape: Distribution, n: int) -> float:
        ends = [
            stats.paired_interval([row], stats.permutation_test(row, flips=999))
            for row in draw(shape, (few, n)).tolist()
        ]
        low, high = np.array(ends).T
        return covered((low, high), truth(shape))

    table(
        f"Difference of progress, coverage % (n = paired tasks; {few} simulations)",
        (20, 60, 112, 282),
        (
            (name, [coverage(shape, n) for n in (20, 60, 112, 282)])
            for name, shape in (DIFFERENCES | BEST_OF_N).items()
        ),
    )
    table(
        "Difference of success, exact coverage % (gained / lost of 100 tasks)",
        (20, 60, 112, 134),
        (
            (f"{gains:.0%} / {losses:.0%}", [paired_coverage(n, gains, losses) for n in (20, 60, 112, 134)])
            for gains, losses in PAIRS
        ),
    )
    table(
        "McNemar, mid-p: rejects equal runs, %, exact (columns: share of tasks that differ)",
        (0.05, 0.1, 0.2, 0.4, 0.8),
        (
            (
                f"n = {n}",
                [stats.mcnemar_power(n, discordant, 0.0) for discordant in (0.05, 0.1, 0.2, 0.4, 0.8)],
            )
            for n in (20, 112, 282)
        ),
    )


def _grouping(sizes: Sequence[int]) -> tuple[Grouping, NDArray[np.int64]]:
    kinds = np.repeat(np.arange(len(sizes)), sizes)
    return Grouping.of(kinds.tolist()), kinds


def by_kind(simulations: int) -> None:
    """Runs that differ in kinds, one up and another down, and not on the whole."""
    layouts = {name: [sizes] for name, sizes in KINDS.items()}
    layouts["held-out"] = [KINDS[name] for name in ("BabyAI", "ScienceWorld", "PDDL", "Jericho")]

    def sizes_of_tests(strata: Sequence[Sequence[int]], spread: float) -> list[float]:
        generator = np.random.default_rng(4)
        values, groupings = [], []
        for sizes in strata:
            grouping, kinds = _grouping(sizes)
            tilt = np.clip(0.5 + spread * generator.standard_normal((simulations, len(sizes))), 0, 1)[
                :, kinds
            ]
            differs = generator.random(tilt.shape) < 0.4
            values.append(np.where(differs, np.where(generator.random(tilt.shape) < tilt, 1.0, -1.0), 0.0))
            groupings.append(grouping)
        tasks = np.concatenate(values, axis=1)
        mcnemar = stats.mcnemar_midp((tasks > 0).sum(axis=1), (tasks < 0).sum(axis=1))
        inflation, freedom = inflation_by_kind(values, groupings)
        places = [(v + 1) / 2 for v in values]
        wide = limits(places, inflation=inflation, freedom=freedom, unseen=count_unseen_pairs(places))
        p = p_of_no_difference(values, inflation=inflation, freedom=freedom)
        return [
            float(np.mean(mcnemar <= 0.05)),
            float(np.mean(p <= 0.05)),
            covered(wide, 0.5),
        ]

    for spread, name in ((0.0, "independent tasks"), (0.25, "kinds alike"), (0.5, "kinds very much alike")):
        table(
            f"Two equal runs, 40 % of the tasks differ, {name}: rejected at 5 %, and coverage, %",
            ("McNemar", "by kind", "interval"),
            ((family, sizes_of_tests(strata, spread)) for family, strata in layouts.items()),
        )

    def one_run(sizes: Sequence[int], alike: float) -> list[float]:
        generator = np.random.default_rng(5)
        grouping, kinds = _grouping(sizes)
        rates = np.full((simulations, len(sizes)), 0.3)
        if alike:
            rates = generator.beta(0.3 * (1 / alike - 1), 0.7 * (1 / alike - 1), rates.shape)
        values = [(generator.random((simulations, len(kinds))) < rates[:, kinds]).astype(float)]
        inflation, freedom = inflation_by_kind(values, [grouping])
        wide = limits(values, inflation=inflation, freedom=freedom, unseen=UNSEEN)
        return [covered(limits(values), 0.3), covered(wide, 0.3)]

    for alike in (0.0, 0.2, 0.5):
        table(
            f"A rate of 30 %, correlation {alike:g} within kinds: coverage, %",
            ("interval", "by kind"),
            ((family, one_run(sizes, alike)) for family, sizes in KINDS.items()),
        )


def power(simulations: int) -> None:
    """A true gain that is the same in every kind, or is all in some: how often do both tests find it?"""

    def found(sizes: Sequence[int], gain: float, kinds_that_gain: int) -> list[float]:
        generator = np.random.default_rng(8)
        grouping, kinds = _grouping(sizes)
        rates = np.where(kinds < kinds_that_gain, gain, 0.0)
        up = 0.1 + rates * len(kinds) / max(1, int((rates > 0).sum()))
        drawn = generator.random((simulations, len(kinds)))
        values = np.where(drawn < np.minimum(up, 0.9), 1.0, np.where(drawn > 0.9, -1.0, 0.0))
        inflation, freedom = inflation_by_kind([values], [grouping])
        sums = values @ grouping.member
        flipped = [stats.permutation_test(row.tolist(), flips=499) <= 0.05 for row in sums[:300]]
        return [
            float(np.mean(stats.mcnemar_exact((values > 0).sum(axis=1), (values < 0).sum(axis=1)) <= 0.05)),
            float(np.mean(stats.mcnemar_midp((values > 0).sum(axis=1), (values < 0).sum(axis=1)) <= 0.05)),
            float(np.mean(p_of_no_difference([values], inflation=inflation, freedom=freedom) <= 0.05)),
            float(np.mean(flipped)),
        ]

    for every, name in ((True, "in every kind"), (False, "in half of the kinds")):
        table(
            f"Power at 5 %, %: 10 % of the tasks lost, as many gained and a gain more, {name}",
            ("exact", "mid-p", "kinds, t", "kinds, signs"),
            (
                (
                    f"{family}, {gain:.0%}",
                    found(sizes, gain, len(sizes) if every else -(-len(sizes) // 2)),
                )
                for family, sizes in KINDS.items()
                for gain in ((0.3, 0.4) if family == "Jericho" else (0.1, 0.2))
            ),
        )


ATTEMPTS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "most tasks hardly ever solved": lambda g, n: g.choice([0, 0.05, 0.3], n, p=[0.5, 0.4, 0.1]),
    "most tasks nearly always solved": lambda g, n: g.choice([1, 0.95, 0.7], n, p=[0.4, 0.5, 0.1]),
    "every task at 5 %": lambda g, n: np.full(n, 0.05),
    "every task at 50 %": lambda g, n: np.full(n, 0.5),
    "tasks of all sorts": lambda g, n: g.beta(0.3, 0.7, n),
}
"""How likely an attempt is to solve each of n tasks; the same in both runs."""


def repeats(simulations: int) -> None:
    def sizes_of_tests(shape: str, n: int, first: int, second: int) -> list[float]:
        generator = np.random.default_rng(6)
        signs = dealt = held = 0
        for _ in range(simulations):
            p = ATTEMPTS[shape](generator, n)[:, None]
            a, b = ((generator.random((n, k)) < p).astype(float) for k in (first, second))
            deltas = (b.mean(axis=1) - a.mean(axis=1)).tolist()
            signs += stats.permutation_test(deltas, flips=499) <= 0.05
            p = stats.attempts_test(a.tolist(), b.tolist(), resamples=499)
            dealt += p <= 0.05
            low, high = stats.paired_interval([deltas], p)
            held += low <= 0 <= high
        return [count / simulations for count in (signs, dealt, held)]

    for first, second in ((1, 10), (1, 3), (10, 10)):
        table(
            f"{first} attempt(s) of each task against {second}, equal runs: rejected at 5 %, and coverage, %",
            ("20: signs", "dealt", "interval", "112: signs", "dealt", "interval"),
            (
                (shape, [x for n in (20, 112) for x in sizes_of_tests(shape, n, first, second)])
                for shape in ATTEMPTS
            ),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=2000, metavar="N")
    n = parser.parse_args().simulations
    print("ONE RUN")
    one_family(n)
    held_out(n)
    pooled(n)
    print("\nTWO RUNS")
    differences(n)
    print("\nKINDS")
    by_kind(n)
    print("\nPOWER")
    power(n)
    print("\nREPEATS")
    repeats(max(200, n // 4))


if __name__ == "__main__":
    main()
