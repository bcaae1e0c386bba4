"""The figures of `report --figure`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, nearest
from evalharness.cli.common import titles
from evalharness.cli.output import write_picture
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.results.curves import Row
    from evalharness.results.leaderboard.standings import Leaderboard
    from evalharness.results.scored_run import ScoredRun


def add_figure_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("figures instead of the page")
    argument(
        group,
        "--figure DIR",
        "draw into DIR (PNG, SVG and CSV): progress by turn, easy against hard tasks, "
        "families, curves over k, slopes under perturbation; needs matplotlib",
        dest="figures",
    )
    argument(
        group,
        "--against NAME",
        'a published row beside the runs, "GPT-4o" or "LLaMA-3-8B/AgentRefine"; may be repeated',
        action="append",
        default=[],
    )
    argument(
        group,
        "--x KEY[=FILE]",
        "also draw scores by a label, or by the values in FILE (CSV or JSON) for each folder; "
        "each value of the label `series` is a line",
    )
    argument(
        group,
        "--style {screen,paper}",
        "paper: PDF and SVG in a serif face, without a title inside (default: screen, PNG and SVG)",
        default="screen",
    )


def draw_figures(args: argparse.Namespace) -> int:
    from evalharness.results import curves
    from evalharness.results.report import looks, plots
    from evalharness.results.run_labels import labels_of
    from evalharness.results.scored_run import load_scored_run
    from evalharness.runs.study import some_run_folders

    looks.style()  # before the work, not after it: raises where matplotlib is missing
    runs = [load_scored_run(folder) for folder in some_run_folders(args.runs)]
    labels = labels_of(runs)
    labelled = list(zip(labels, runs, strict=True))
    tables: dict[str, list[Row]] = {
        "progress_by_turn": [
            row
            for label, run in labelled
            for row in curves.progress_by_turn(label, run.folder, run.max_turns)
        ],
        "difficulty": [row for label, run in labelled for row in curves.by_difficulty(label, run)],
        "families": _families(runs, labels, args.against),
        "best_of_k": [
            row
            for label, run in labelled
            if run.config["samples"] > 1
            for row in curves.best_of_k(label, run)
        ],
        "perturbations": _perturbations(runs),
        "scaling": _scaling(runs, args.x) if args.x else [],
    }
    names = titles() | {family: title for run in runs for family, title in run.titles.items()}
    with looks.style(args.style):
        for name, rows in tables.items():
            if rows:
                write_picture(args.figures / name, rows, plots.DRAW[name](rows, names), args.style)
    return 0


def _families(runs: list[ScoredRun], labels: list[str], against: list[str]) -> list[Row]:
    """Empty for runs under several perturbations: the slopes show these. Raises UserError where runs are not of one
    suite and turn limit, or do not belong beside the published rows that are asked for."""
    from dataclasses import replace

    from evalharness.envs import specs
    from evalharness.results.leaderboard.leaderboards import make_leaderboard, not_beside_published
    from evalharness.results.leaderboard.marked_rows import columns_of, points, row_of
    from evalharness.results.leaderboard.standing_rows import Benchmark
    from evalharness.results.scored_run import require_same, require_same_turns

    if len({run.perturbation for run in runs}) > 1 and not against:
        advice = "one picture holds runs of one protocol only"
        require_same(runs, "suite", lambda run: run.suite, advice)
        require_same_turns(runs, advice)
        return []
    benchmark = Benchmark.of(specs())
    if not against:  # then every family has its place in the picture, also one with a table of its own
        benchmark = replace(benchmark, apart=frozenset())
    for run in runs if against else ():
        if why := not_beside_published(run, benchmark):
            raise UserError(f"{run.folder} {why}; leave that run or --against out")
    board = make_leaderboard(runs, benchmark, published=bool(against))
    shown = _published_rows(board, against)
    shown |= dict(enumerate(labels, start=len(board.standings) - len(runs)))
    rows = (
        replace(row_of(board, standing, derived=True), name=shown[i])
        for i, standing in enumerate(board.standings)
        if i in shown
    )
    return points(rows, columns_of(board))


def _scaling(runs: list[ScoredRun], over: str) -> list[Row]:
    """Raises UserError where a run has no value, or the runs are not of one protocol."""
    from evalharness.results import curves
    from evalharness.results.scored_run import require_same
    from evalharness.results.x_values import placed, read_x

    advice = "one curve holds runs of one protocol only"
    require_same(runs, "suite", lambda run: run.suite, advice)
    require_same(runs, "turn limit", lambda run: run.max_turns, advice)
    key, given = read_x(over)
    return list(curves.over_x(key, placed(runs, key, given, over)))


def _perturbations(runs: list[ScoredRun]) -> list[Row]:
    """Of each model that was run under a perturbation."""
    from evalharness.results import curves
    from evalharness.results.run_labels import labels_of

    groups: dict[str, list[ScoredRun]] = {}
    for run in sorted(runs, key=lambda run: run.perturbation is not None):
        groups.setdefault(run.model_key, []).append(run)
    perturbed = [group for group in groups.values() if any(run.perturbation for run in group)]
    labels = labels_of([group[0] for group in perturbed])
    return [
        row
        for label, group in zip(labels, perturbed, strict=True)
        for row in curves.by_perturbation(label, group)
    ]


def _published_rows(board: Leaderboard, names: list[str]) -> dict[int, str]:
    """Position -> name of the published rows that were asked for."""
    found: dict[int, str] = {}
    for name in names:
        matches = {
            i: standing
            for i, standing in enumerate(board.standings)
            if not standing.ours and name in (standing.name, f"{standing.series}/{standing.name}")
        }
        known = [f"{s.series}/{s.name}" for s in (matches.values() or board.standings) if not s.ours]
        if not matches:
            raise UserError(f"--against {name}: no such published row{nearest(name, known)}")
        if len(matches) > 1:
            raise UserError(f"--against {name} could be {', '.join(known)}")
        found |= dict.fromkeys(matches, name)
    return found
