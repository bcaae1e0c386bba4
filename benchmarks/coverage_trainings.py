"""How often does the interval of a mean over trainings hold the truth? The tables in results/coverage/README.md.

`python benchmarks/coverage_trainings.py` (seeded; a few minutes). A training's logit of success is moved by a normal
error, a task's by another; the truth is the mean over both. Standard error 0.7 points with 1,000 simulations.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from evalharness import stats
from evalharness.stats.trainings import compare_trainings, mean_over_trainings

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
    low, high = mean_over_trainings(ends, float(scores.mean()), [scores])
    return ends[0] <= true <= ends[1], low <= true <= high


def difference(
    draw: np.random.Generator, middle: float, spread: float, n: int, seeds: int
) -> tuple[bool, bool]:
    """Of two ways of training that are alike."""
    tasks = TASK_SPREAD * draw.standard_normal(n)
    first, second = (played(draw, middle, spread, tasks, seeds) for _ in range(2))
    deltas = second.mean(axis=0) - first.mean(axis=0)
    ends = stats.paired_interval([list(deltas)], stats.permutation_test(list(deltas), flips=499))
    low, high = compare_trainings([first], [second]).interval(ends)
    return ends[0] <= 0 <= ends[1], low <= 0 <= high


def table(simulations: int) -> None:
    draw = np.random.default_rng(20_250_104)
    print("| true success, spread of seeds | " + " | ".join(f"n = {n}, {s} seeds" for n, s in OF_ONE) + " |")
    print("|---|" + "---|" * len(OF_ONE))
    for middle in RATES:
        for spread in SEED_SPREADS:
            true = truth(draw, middle, spread)
            cells = []
            for n, seeds in OF_ONE:
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


FAMILIES = {"alfworld": 134, "babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
HEADLINE = ("babyai", "sciworld", "pddl", "jericho")
BATCH = 1000
"""Tables played at once."""
MODES = 4
"""Ways of training in a table; the first is the baseline."""


def p_of(first: list[Array], second: list[Array]) -> Array:
    """Of each table: `compare_trainings` over families, arrays (tables, trainings, tasks), beside a normal interval."""
    seeds = first[0].shape[1]
    n = sum(scores.shape[2] for scores in first)
    tasks = attempts = difference = 0.0
    spread = 0.0
    for side, sign in ((first, -1), (second, 1)):
        means = sum(scores.sum(axis=2) for scores in side) / n
        spread = spread + means.var(axis=1, ddof=1) / seeds
        difference = difference + sign * means.mean(axis=1)
    for a, b in zip(first, second, strict=True):
        size = a.shape[2]
        tasks = tasks + size * (b.mean(axis=1) - a.mean(axis=1)).var(axis=1, ddof=1) / n**2
        for scores in (a, b):
            by_task, by_seed = scores.mean(axis=1, keepdims=True), scores.mean(axis=2, keepdims=True)
            rest = ((scores - by_task - by_seed + scores.mean(axis=(1, 2), keepdims=True)) ** 2).sum(
                axis=(1, 2)
            )
            attempts = attempts + size * rest / ((seeds - 1) * (size - 1) * seeds * n**2)
    freedom = 2 * (seeds - 1)
    variance = spread + np.maximum(0.0, tasks - attempts)
    least = (stats.Z_95 / student.ppf(0.975, freedom)) ** 2 * tasks
    error = np.sqrt(np.maximum(np.maximum(variance, least), 1e-12))
    return np.asarray(2 * student.sf(np.abs(difference) / error, freedom))


def play_tables(
    draw: np.random.Generator, tables: int, seeds: int, spreads: Sequence[float], together: bool, gain: float
) -> list[dict[str, Array]]:
    """A dictionary a row: family -> (tables, trainings, tasks), 0 or 1. `spreads`: of the baseline's seeds and of the
    others'; `together`: a seed moves all families alike; `gain`: of the second row, logits."""
    tasks = {family: TASK_SPREAD * draw.standard_normal((tables, 1, n)) for family, n in FAMILIES.items()}
    played = []
    # The mean success is about that of logit / sqrt(1 + 0.346 variance): equal for both spreads.
    wide, narrow = (1 + 0.346 * (TASK_SPREAD**2 + spreads[i] ** 2) for i in (1, 0))
    for mode in range(MODES):
        middle = -((wide / narrow) ** 0.5) if mode else -1.0
        shared = draw.standard_normal((tables, seeds, 1))
        rows = {}
        for family, hard in tasks.items():
            moved = spreads[mode > 0] * (shared if together else draw.standard_normal((tables, seeds, 1)))
            logit = middle + gain * (mode == 1) + moved + hard
            rows[family] = (draw.random(logit.shape) < chance(logit)).astype(float)
        played.append(rows)
    return played


def have_star(played: list[dict[str, Array]], rows: int) -> NDArray[np.bool_]:
    """Of each table: whether one of the first `rows` comparisons has a star, at the headline or at a family."""

    def p(mode: int, families: Sequence[str]) -> Array:
        return p_of(*([played[i][family] for family in families] for i in (0, mode)))

    first, second = ([played[i]["pddl"][0]] for i in (0, 1))
    test = compare_trainings(first, second)
    half = stats.Z_95 * test.widening.tasks**0.5
    assert np.isclose(p(1, ["pddl"])[0], test.p((test.difference - half, test.difference + half)))
    heads = np.stack([p(mode, HEADLINE) for mode in range(1, MODES)], axis=1)
    families = np.stack([p(mode, (family,)) for mode in range(1, MODES) for family in FAMILIES], axis=1)
    stars = []
    for own, alone in zip(heads, families, strict=True):
        head = np.asarray(stats.holm(list(own)))[:rows]
        family = np.reshape(stats.holm(list(alone)), (MODES - 1, -1))[:rows]
        stars.append(min(head.min(), np.maximum(family, head[:, None]).min()) < 0.05)
    return np.array(stars)


def stars(tables: int) -> None:
    """Percent of tables with a false star, and of those with a star at a gain."""
    draw = np.random.default_rng(20_250_106)
    print("| seeds | spread | false star | families apart | power, +0.5 | +1 |")
    print("|---|---|---|---|---|---|")
    for seeds in (2, 3, 5):
        for spreads in (*((spread, spread) for spread in SEED_SPREADS), (0.0, 1.0)):
            cells = []
            for together, gain, rows in (
                (True, 0, MODES - 1),
                (False, 0, MODES - 1),
                (True, 0.5, 1),
                (True, 1, 1),
            ):
                batches = tables // BATCH if gain == 0 else max(1, tables // BATCH // 10)
                found = [
                    have_star(play_tables(draw, BATCH, seeds, spreads, together, gain), rows)
                    for _ in range(batches)
                ]
                cells.append(f"{100 * np.mean(found):.{0 if gain else 1}f}")
            said = f"{spreads[1]:g}" if spreads[0] == spreads[1] else "0 and 1"
            print(f"| {seeds} | {said} | " + " | ".join(cells) + " |", flush=True)


OF_ONE = ((20, 2), (20, 3), (134, 2), (134, 3), (134, 5), (282, 2))
SIZES = OF_ONE[:-1]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    number = parser.parse_args().simulations
    table(number)
    print()
    differences(number // 2)
    print()
    stars(40 * number)
