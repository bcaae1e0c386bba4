"""Draw the figures of `report --figure`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from evalharness.cli.common import titles
from evalharness.cli.output import write_picture
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from evalharness.results.curves import Row


def add_figure_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("figures instead of the page")
    argument(
        group,
        "--figure DIR",
        "draw figures into DIR (PNG, SVG and CSV): progress by turn, easy and hard tasks, best of k; needs matplotlib",
        dest="figures",
    )
    argument(
        group,
        "--style {screen,paper}",
        "paper: PDF and SVG in a serif face, without a title inside (default: screen, PNG and SVG)",
        default="screen",
    )


def draw_figures(args: argparse.Namespace) -> int:
    from evalharness.results import curves
    from evalharness.results.figures import looks, plots
    from evalharness.results.run_labels import labels_of
    from evalharness.results.scored_run import load_scored_run
    from evalharness.runs.study_file import some_run_folders

    looks.style()  # raise an error at once if matplotlib is missing
    runs = [load_scored_run(folder) for folder in some_run_folders(args.runs)]
    labels = labels_of(runs)
    pairs = list(zip(labels, runs, strict=True))
    tables: dict[str, list[Row]] = {
        "progress_by_turn": [
            row for label, run in pairs for row in curves.progress_by_turn(label, run.folder, run.max_turns)
        ],
        "difficulty": [row for label, run in pairs for row in curves.by_difficulty(label, run)],
        "best_of_k": [
            row for label, run in pairs if run.config["samples"] > 1 for row in curves.best_of_k(label, run)
        ],
    }
    names = titles() | {family: title for run in runs for family, title in run.titles.items()}
    with looks.style(args.style):
        for name, rows in tables.items():
            if rows:
                write_picture(args.figures / name, rows, plots.DRAW[name](rows, names), args.style)
    return 0
