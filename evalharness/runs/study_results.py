"""Compute and print the results of a stored study. This needs only its run folders, no server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from evalharness.envs import specs
from evalharness.records.store import EPISODES
from evalharness.results.best_of_n import BestOfN, best_of_n
from evalharness.results.checkpoints import Training, training_of
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.scored_run import ScoredRun, load_scored_run
from evalharness.results.sweep import UNPERTURBED, Sweep, sweep_of
from evalharness.results.terminal.best_of_n import print_best_of_n
from evalharness.results.terminal.checkpoints import print_training
from evalharness.results.terminal.studies import print_study_runs, put_agents_together, put_seeds_together
from evalharness.results.terminal.sweep import print_sweep
from evalharness.runs.checkpoints import axis_and_number
from evalharness.runs.study_file import BEST_OF_N, CHECKPOINTS, GREEDY, SAMPLES, SELECT, read_study

Runs = Mapping[str, ScoredRun]


class Result(Protocol):
    def to_json(self) -> dict[str, Any]: ...


def load_played_runs(folder: Path) -> Runs:
    """Map names to runs, for the runs of a study that have episodes, in the study's order. Raises UserError."""
    study = read_study(folder)
    runs = {}
    for name, where in (study[1] if study else {}).items():
        episodes = folder / where / EPISODES
        if episodes.exists() and episodes.stat().st_size:
            runs[name] = load_scored_run(folder / where)
    return runs


def print_study(console: Console, folder: Path, *, verbose: bool = False) -> Result | None:
    """Print the table for the study's kind; with `verbose`, all tests. If the necessary runs were not played, print a
    line and return None. Raises UserError."""
    study = read_study(folder)
    assert study is not None
    kind, named = study
    runs = load_played_runs(folder)
    result: Result | None = None
    if kind in _SHOWN and runs:
        make, show = _SHOWN[kind]
        if (result := make(folder, runs)) is not None:
            show(console, result, verbose=verbose)
    if result is None:
        console.print(
            f"{folder}: a {kind} study; played so far: {', '.join(runs) or 'nothing'}", soft_wrap=True
        )
    elif missing := [name for name in named if name not in runs]:
        console.print(f"not played: {', '.join(missing)}", soft_wrap=True)
    return result


def sweep_result(runs: Runs) -> Sweep:
    spec = specs().get(next(iter(runs[UNPERTURBED].manifest.counts)))
    perturbations = spec.actions.wording.perturbations if spec is not None else {}
    first = [name for name, how in perturbations.items() if how.in_first_average]
    return sweep_of(runs, first, [name for name, how in perturbations.items() if how.recalled])


def best_of_n_result(folder: Path) -> BestOfN | None:
    """Return the result of a Best-of-N study; None if one of its two runs was not played. Raises UserError."""
    runs = load_played_runs(folder)
    return best_of_n(runs[GREEDY], runs[SAMPLES]) if {GREEDY, SAMPLES} <= runs.keys() else None


def training_result(
    folder: Path,
    by: str = "progress",
    *,
    choose_elsewhere: bool | None = None,
) -> Training | None:
    """Return the scores by checkpoint. `choose_elsewhere`: whether runs on another suite select the best checkpoint;
    None: if there are such runs. Return None if no result can be computed yet. Raises UserError."""
    runs = load_played_runs(folder)
    shown = {name: run for name, run in runs.items() if not name.endswith(SELECT)}
    select = {name.removesuffix(SELECT): run for name, run in runs.items() if name.endswith(SELECT)}
    if not shown or (choose_elsewhere and not select.keys() & shown.keys()):
        return None
    first, axis = next(iter(shown.values())), axis_and_number(next(iter(shown)))[0]
    places = {name: float(axis_and_number(name)[1]) for name in shown}
    return training_of(
        {name: (places[name], run) for name, run in shown.items()},
        model=first.name.rpartition("/")[0] or first.name,
        axis=axis,
        by=by,
        select=None if choose_elsewhere is False else select or None,
    )


Make = Callable[[Path, Runs], Any]
_SHOWN: Mapping[str, tuple[Make, Callable[..., None]]] = {
    "sweep": (lambda folder, runs: sweep_result(runs) if UNPERTURBED in runs else None, print_sweep),
    BEST_OF_N: (lambda folder, runs: best_of_n_result(folder), print_best_of_n),
    "seeds": (
        lambda folder, runs: put_seeds_together(list(runs.values()), Benchmark.of(specs())),
        print_study_runs,
    ),
    "agents": (
        lambda folder, runs: put_agents_together(list(runs.values()), Benchmark.of(specs())),
        print_study_runs,
    ),
    CHECKPOINTS: (lambda folder, runs: training_result(folder), print_training),
}
"""Kind -> function that computes the result (None if necessary runs were not played), function that prints it."""
