"""How often do the 95 % intervals hold the truth? The table of docs/statistics.md: python benchmarks/coverage.py"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from progress_shapes import PROGRESS, SHAPES
from scipy.special import gammaln
from scipy.stats import binom

from evalharness import stats

PAIRS = (
    (0.3, 0.1, 0.1, 0.5),
    (0.2, 0.25, 0.1, 0.45),
    (0.4, 0.3, 0.05, 0.25),
    (0.1, 0.2, 0.2, 0.5),
    (0.05, 0.1, 0.05, 0.8),
)
REPEATS = 4000
Method = Callable[[list[float]], stats.Interval]
METHODS: dict[str, Method] = {
    "score": stats.score_mean,
    "bootstrap": lambda values: stats.bootstrap_mean(values, resamples=2000),
}


def wilson_coverage(n: int, rate: float) -> float:
    """Exact."""
    held = [low <= rate <= high for low, high in (stats.wilson(k, n) for k in range(n + 1))]
    return float(binom.pmf(np.arange(n + 1), n, rate)[held].sum())


def newcombe_coverage(n: int, shares: tuple[float, ...]) -> float:
    """Exact, over every table of n pairs."""
    cells = np.array(
        [
            (a, b, c, n - a - b - c)
            for a in range(n + 1)
            for b in range(n + 1 - a)
            for c in range(n + 1 - a - b)
        ],
        dtype=float,
    ).T
    chance = np.exp(
        gammaln(n + 1) + sum(c * np.log(p) - gammaln(c + 1) for c, p in zip(cells, shares, strict=True))
    )
    low, high = stats.newcombe_paired(*cells)
    return float(chance[(low <= shares[1] - shares[2]) & (shares[1] - shares[2] <= high)].sum())


def mean_coverage(interval: Method, n: int, shares: tuple[float, ...]) -> float:
    generator = np.random.default_rng(1)
    truth = float(PROGRESS @ shares)
    samples = generator.choice(PROGRESS, (REPEATS, n), p=shares)
    intervals = [interval(sample.tolist()) for sample in samples]
    return sum(low <= truth <= high for low, high in intervals) / REPEATS


def held_out_coverage() -> float:
    """The stratified bootstrap with families of 112, 90, 60 and 20 tasks, each of another shape."""
    generator = np.random.default_rng(1)
    sizes, shapes = (112, 90, 60, 20), list(SHAPES.values())[:4]
    truth = sum(n * float(PROGRESS @ np.array(p)) for n, p in zip(sizes, shapes, strict=True)) / sum(sizes)
    held = 0
    for _ in range(REPEATS // 4):
        strata = [generator.choice(PROGRESS, n, p=p).tolist() for n, p in zip(sizes, shapes, strict=True)]
        low, high = stats.bootstrap_weighted_mean(strata, sizes, resamples=2000)
        held += low <= truth <= high
    return held / (REPEATS // 4)


def mcnemar_size(n: int, discordant: float) -> float:
    """Exact."""
    return stats.mcnemar_power(n, discordant, 0.0)


def main() -> None:
    for n in (20, 60):
        rates = np.linspace(0.02, 0.98, 97)
        listed = [wilson_coverage(n, rate) for rate in rates]
        print(f"Wilson, n = {n}: mean {100 * np.mean(listed):.1f} %, lowest {100 * min(listed):.1f} %")
        for name, shares in SHAPES.items():
            found = [100 * mean_coverage(method, n, shares) for method in METHODS.values()]
            each = ", ".join(f"{method} {value:.1f} %" for method, value in zip(METHODS, found, strict=True))
            print(f"progress, n = {n}, {name}: {each}")
    print(f"held-out, 282 tasks in four families: {100 * held_out_coverage():.1f} %")
    for n in (20, 40):
        listed = [newcombe_coverage(n, shares) for shares in PAIRS]
        print(f"Newcombe, n = {n}: " + ", ".join(f"{100 * value:.1f}" for value in listed) + " %")
    for n in (20, 112, 282):
        sizes = [mcnemar_size(n, discordant) for discordant in (0.05, 0.1, 0.2, 0.4, 0.8)]
        print(f"McNemar under the null, n = {n}: " + ", ".join(f"{100 * size:.1f}" for size in sizes) + " %")


if __name__ == "__main__":
    main()
