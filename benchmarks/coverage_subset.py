"""How far is the held-out score of `--subset N` from that of all tasks, and how often does its interval hold it?

`python benchmarks/coverage_subset.py`, two minutes, with the published suite's data. Models are simulated on its tasks,
because no model's results task by task are ours to ship: a model solves a task with a probability that falls with what
eight recorded models left undone (results/published/task_difficulty.csv), blurred by `--noise` on the logit scale, so
that the order is only partly that model's own. Noise `none`: errors that ignore difficulty and follow kinds of tasks.
Partial progress: the mean of a few such draws. `difference`: success of a second model less that of the first.
Compared: the subset, tasks drawn at random within families, tasks drawn at random.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalharness import stats
from evalharness.base.paths import data_folder, find_published_folder
from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.suites.draws import choose_subset
from evalharness.suites.selection import family_tasks

FAMILIES = ("babyai", "jericho", "pddl", "sciworld")
Array = NDArray[np.float64]


def tasks() -> dict[str, list[tuple[Task, float]]]:
    """Family -> its tasks and their difficulty."""
    found: dict[str, list[tuple[Task, float]]] = {family: [] for family in FAMILIES}
    kinds = {
        task.id: task.kind
        for family in FAMILIES
        for task in family_tasks(specs()[family], "agentboard", data_folder(), 0)
    }
    with Path(find_published_folder() / "task_difficulty.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["family"] in found:
                number = int(row["task"])
                task_id = f"{row['family']}/agentboard/{number:03d}"
                task = Task(
                    id=task_id, family=row["family"], suite="agentboard",
                    index=number, goal="", difficulty="hard", kind=kinds[task_id], subgoals=(), payload={},
                )  # fmt: skip
                hard = 1 - (float(row["mean_progress"]) + float(row["mean_success"])) / 2
                found[row["family"]].append((task, hard))
    return found


def model(
    difficulty: Array,
    kinds: NDArray[np.int64],
    ability: float,
    noise: float,
    steps: int,
    rng: np.random.Generator,
) -> Array:
    """A value 0..1 a task. `noise` infinite: every kind has a logit of its own, and difficulty none."""
    if np.isinf(noise):
        logit = ability + 2 * rng.standard_normal(kinds.max() + 1)[kinds]
    else:
        eased = np.clip(difficulty, 0.02, 0.98)
        logit = ability - np.log(eased / (1 - eased)) + noise * rng.standard_normal(len(eased))
    return rng.binomial(steps, 1 / (1 + np.exp(-logit))) / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.5, 1.0, 2.0, np.inf])
    args = parser.parse_args()
    known = tasks()
    flat = [(family, task, hard) for family in FAMILIES for task, hard in known[family]]
    difficulty = np.asarray([hard for _, _, hard in flat])
    place = {task.id: at for at, (_, task, _) in enumerate(flat)}
    hardness = {task.id: hard for _, task, hard in flat}
    print(
        "| N | noise | measure | mean score | error of the subset | within families | of any | coverage % | width |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for count in (40, 60, 80, 120):
        chosen = choose_subset(
            {f: [t for t, _ in known[f]] for f in FAMILIES}, count, lambda t: hardness[t.id]
        )
        weights = np.asarray(list(chosen.values()), dtype=float)
        at = np.asarray([place[task_id] for task_id in chosen])
        parts = [[k for k, i in enumerate(at) if flat[i][0] == family] for family in FAMILIES]
        for noise in args.noise:
            for measure, steps in (("success", 1), ("progress", 4), ("difference", 1)):
                print(
                    row(count, noise, measure, steps, args.simulations, difficulty, at, weights, parts, flat)
                )


def row(
    count: int, noise: float, measure: str, steps: int, simulations: int, difficulty: Array,
    at: NDArray[np.int64], weights: Array, parts: list[list[int]], flat: list[tuple[str, Task, float]],
) -> str:  # fmt: skip
    rng = np.random.default_rng(7)
    errors: dict[str, list[float]] = {"subset": [], "family": [], "any": []}
    held, widths, means = 0, [], []
    groups = [np.asarray([i for i, one in enumerate(flat) if one[0] == family]) for family in FAMILIES]
    names = sorted({(task.family, task.kind) for _, task, _ in flat})
    kinds = np.asarray([names.index((task.family, task.kind)) for _, task, _ in flat])
    for _ in range(simulations):
        ability = rng.uniform(-3, 2)
        values = model(difficulty, kinds, ability, noise, steps, rng)
        if measure == "difference":
            values = model(difficulty, kinds, ability + rng.uniform(-1, 1), noise, steps, rng) - values
        truth = float(values.mean())
        own = values[at]
        estimate = float((own * weights).sum() / weights.sum())
        listed = [list(own[part]) for part in parts]
        if measure == "difference":
            (low, high), _ = stats.subset_difference(listed, estimate, len(flat))
        else:
            low, high = stats.subset_interval(listed, len(flat))
        held += min(low, estimate) <= truth <= max(high, estimate)
        widths.append(high - low)
        means.append(truth)
        errors["subset"].append(estimate - truth)
        drawn = [
            rng.choice(values[group], len(part), replace=False)
            for group, part in zip(groups, parts, strict=True)
        ]
        by_family = sum(len(g) * d.mean() for g, d in zip(groups, drawn, strict=True)) / len(flat)
        errors["family"].append(float(by_family) - truth)
        errors["any"].append(float(rng.choice(values, count, replace=False).mean()) - truth)
    rms = {name: 100 * float(np.sqrt(np.mean(np.square(listed)))) for name, listed in errors.items()}
    blurred = "none" if np.isinf(noise) else f"{noise:g}"
    return (
        f"| {count} | {blurred} | {measure} | {100 * np.mean(means):.1f} | {rms['subset']:.2f} | {rms['family']:.2f} | "
        f"{rms['any']:.2f} | {100 * held / simulations:.1f} | {100 * np.mean(widths):.1f} |"
    )


if __name__ == "__main__":
    main()
