"""How often does the interval of a mean over trainings hold the truth? The tables in results/coverage/README.md.

`python benchmarks/coverage_trainings.py` (seeded; a few minutes). A training's logit of success is moved by a normal
error, a task's by another; the truth is the mean over both. Standard error 0.7 points with 1,000 simulations.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from evalharness import stats
from evalharness.stats.trainings import SeedError, over_trainings, seed_error

Array = NDArray[np.float64]
TASK_SPREAD = 1.5
"""Of tasks' logits: most tasks are hard or easy."""
SEED_SPREADS = (0.0, 0.2, 0.5, 1.0)
RATES = (-4.0, -1.5, 0.0)
"""Middle logits: about 4, 25 and 50 % success."""


def chance(logit: Array) -> Array:
    return 1 / (1 + np.exp(-logit))


def truth(draw: np.random.Generator, middle: float, spread: float) -> float:
    return float(chance(middle + np.hypot(spread, TASK_SPREAD) * draw.standard_normal(2_000_000)).mean())


def played(draw: np.random.Generator, middle: float, spread: float, tasks: Array, seeds: int) -> Array:
    """Trainings x tasks, 0 or 1."""
    trained = middle + spread * draw.standard_normal(seeds)
    return (draw.random((seeds, len(tasks))) < chance(trained[:, None] + tasks)).astype(float)


def one(
    draw: np.random.Generator, middle: float, spread: float, n: int, seeds: int, true: float
) -> tuple[bool, bool]:
    scores = played(draw, middle, spread, TASK_SPREAD * draw.standard_normal(n), seeds)
    ends = stats.rate_interval(list(scores.mean(axis=0)), binary=True)
    error = seed_error([scores])
    low, high = over_trainings(ends, float(scores.mean()), [error], error.tasks, (0.0, 1.0))
    return ends[0] <= true <= ends[1], low <= true <= high


def difference(
    draw: np.random.Generator, middle: float, spread: float, n: int, seeds: int
) -> tuple[bool, bool]:
    """Of two ways of training that are alike."""
    tasks = TASK_SPREAD * draw.standard_normal(n)
    first, second = (played(draw, middle, spread, tasks, seeds) for _ in range(2))
    deltas = second.mean(axis=0) - first.mean(axis=0)
    ends = stats.paired_interval([list(deltas)], stats.permutation_test(list(deltas), flips=499))
    errors: list[SeedError] = [seed_error([scores]) for scores in (first, second)]
    low, high = over_trainings(ends, float(deltas.mean()), errors, float(deltas.var(ddof=1)) / n, (-1.0, 1.0))
    return ends[0] <= 0 <= ends[1], low <= 0 <= high


def table(simulations: int) -> None:
    draw = np.random.default_rng(20_250_104)
    print("| true success, spread of seeds | " + " | ".join(f"n = {n}, {s} seeds" for n, s in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for middle in RATES:
        for spread in SEED_SPREADS:
            true = truth(draw, middle, spread)
            cells = []
            for n, seeds in SIZES:
                found = np.array([one(draw, middle, spread, n, seeds, true) for _ in range(simulations)])
                cells.append(" / ".join(f"{100 * share:.1f}" for share in found.mean(axis=0)))
            print(f"| {100 * true:.0f} %, {spread:g} | " + " | ".join(cells) + " |", flush=True)


def differences(simulations: int) -> None:
    draw = np.random.default_rng(20_250_105)
    print(
        "| equal on the whole, spread of seeds | "
        + " | ".join(f"n = {n}, {s} seeds" for n, s in SIZES)
        + " |"
    )
    print("|---|" + "---|" * len(SIZES))
    for spread in SEED_SPREADS:
        cells = []
        for n, seeds in SIZES:
            found = np.array([difference(draw, -1.5, spread, n, seeds) for _ in range(simulations)])
            cells.append(" / ".join(f"{100 * share:.1f}" for share in found.mean(axis=0)))
        print(f"| 25 %, {spread:g} | " + " | ".join(cells) + " |", flush=True)


SIZES = ((20, 2), (20, 3), (134, 2), (134, 3), (134, 5))

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    number = parser.parse_args().simulations
    table(number)
    print()
    differences(number // 2)
