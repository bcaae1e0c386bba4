"""How often do the intervals of behaviour's error-run length and of chance-corrected scores hold the truth?

The tables of docs/behaviour.md and docs/statistics.md: python benchmarks/coverage_ratios.py [REPEATS]. Seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evalharness import stats

Array = NDArray[np.float64]
Generator = np.random.Generator
TURNS = 30
_TRUTH_TASKS = 200_000


def _lengths(generator: Generator, runs: NDArray[np.int64], end: Array | float) -> Array:
    """tasks x 2: error turns and error runs; a run ends after each turn with probability `end`, at 30 at the latest."""
    owner = np.repeat(np.arange(len(runs)), runs)
    lengths = np.minimum(generator.geometric(np.broadcast_to(end, runs.shape)[owner]), TURNS)
    return np.stack([np.bincount(owner, lengths, minlength=len(runs)), runs], axis=1).astype(np.float64)


def even(generator: Generator, n: int) -> Array:
    return _lengths(generator, generator.poisson(3, n), 0.5)


def unlike_tasks(generator: Generator, n: int) -> Array:
    return _lengths(
        generator, generator.poisson(3, n), generator.choice([0.9, 0.5, 0.1], n, p=[0.6, 0.3, 0.1])
    )


def few_errors(generator: Generator, n: int) -> Array:
    return _lengths(generator, generator.binomial(1, 0.4, n) * generator.integers(1, 3, n), 0.5)


def some_stuck(generator: Generator, n: int) -> Array:
    stuck = generator.random(n) < 0.1
    return _lengths(generator, np.where(stuck, 1, generator.poisson(1.5, n)), np.where(stuck, 0.05, 0.8))


def longer_where_fewer(generator: Generator, n: int) -> Array:
    runs = generator.poisson(2, n)
    return _lengths(generator, runs, np.where(runs < 2, 0.3, 0.8))


SHAPES: dict[str, Callable[[Generator, int], Array]] = {
    "all tasks alike": even,
    "60 % of the tasks short, 10 % long": unlike_tasks,
    "errors in 40 % of the tasks": few_errors,
    "10 % of the tasks stuck": some_stuck,
    "longer runs where there are fewer": longer_where_fewer,
}


def _bootstrap(tasks: Array) -> stats.Interval:
    low, high = stats.bootstrap_ratios([tasks[:, None, :]])
    return float(low[0]), float(high[0])


def length_coverage(shape: Callable[[Generator, int], Array], n: int, repeats: int) -> tuple[float, float]:
    """Shares in which the bootstrap's interval and `mean_length_interval` hold the mean length."""
    whole = shape(np.random.default_rng(99), _TRUTH_TASKS).sum(axis=0)
    truth = whole[0] / whole[1]
    generator = np.random.default_rng(1)
    held, counted = [0, 0], 0
    for _ in range(repeats):
        tasks = shape(generator, n)
        if tasks[:, 1].sum() == 0:
            continue
        counted += 1
        for i, (low, high) in enumerate((_bootstrap(tasks), stats.mean_length_interval([tasks], TURNS))):
            held[i] += low <= truth <= high
    return held[0] / counted, held[1] / counted


def corrected_coverage(
    n: int, rate: float, floors: Array, repeats: int, *, attempts: int = 5
) -> tuple[float, float]:
    """Of a success rate over `n` tasks with a ceiling of 1 and these floors, measured with 5 attempts a task: shares
    in which the chance-corrected interval holds the truth if the floor is taken as exact, and as it is made."""
    generator = np.random.default_rng(1)
    floor = np.resize(floors, n)
    truth = (rate - floor.mean()) / (1 - floor.mean())
    held = [0, 0]
    for _ in range(repeats):
        solved = int(generator.binomial(n, rate))
        means = generator.binomial(attempts, floor) / attempts
        error = float(np.sqrt((means * (1 - means)).sum() / (attempts - 1)) / n)
        mean = float(means.mean())
        limits = stats.wilson(solved, n)
        for i, ends in enumerate(((mean, mean), stats.limits_of_mean(mean, error, attempts * n))):
            found = stats.correct_limits(solved / n, limits, mean, ends, 1.0)
            held[i] += found is not None and found[0] <= truth <= found[1]
    return held[0] / repeats, held[1] / repeats


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    for name, shape in SHAPES.items():
        for n in (20, 60, 112):
            old, new = length_coverage(shape, n, repeats)
            print(f"error-run length, n = {n}, {name}: bootstrap {100 * old:.1f} %, ours {100 * new:.1f} %")
    floors = {
        "BabyAI's": np.array([0.0, 0.2, 0.2, 0.4, 0.6, 0.6, 0.8, 1.0]),
        "near 0": np.array([0.0, 0.0, 0.0, 0.1]),
    }
    for name, values in floors.items():
        for n, rate in ((20, 0.5), (112, 0.5), (112, 0.95), (282, 0.3)):
            old, new = corrected_coverage(n, rate, values, 5 * repeats)
            print(
                f"chance-corrected, n = {n}, rate {rate}, floors {name}: floor taken as exact {100 * old:.1f} %, "
                f"ours {100 * new:.1f} %"
            )


if __name__ == "__main__":
    main()
