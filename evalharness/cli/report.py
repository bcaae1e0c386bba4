"""Write runs, or data sets of `evalharness refine`, as one HTML file that works offline: scores with intervals, every
trajectory turn by turn, two runs side by side. The runs may still be in progress. docs/report.md"""

from __future__ import annotations

import argparse
from pathlib import Path

from evalharness.cli.common import add_data_option
from evalharness.cli.output import note, say, write_text
from evalharness.cli.parser import argument
from evalharness.cli.report_figures import add_figure_options, draw_figures

HELP = "write runs as one HTML page"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "-o --output FILE", "file to write", default=Path("report.html"))
    argument(
        parser, "--short", "print the answer and the scores as Markdown, for an e-mail or a pull request"
    )
    add_figure_options(parser)
    add_data_option(parser)
    argument(parser, "runs RUN", "run folders or studies, of one suite", nargs="+")
    argument(
        parser,
        "--prompts DIR",
        "the folder that was given as `run --prompts DIR`; the page needs it to show the prompts",
    )


def run(args: argparse.Namespace) -> int:
    if args.figures is not None:
        return draw_figures(args)
    if args.short:
        return _print_short(args)
    from evalharness.base.extensions import find_hook
    from evalharness.records.data_set import open_as_runs
    from evalharness.results.report.bundle import load_bundle
    from evalharness.results.report.page import write_page
    from evalharness.runs.study_file import some_run_folders

    problems: list[str] = []
    with open_as_runs(some_run_folders(args.runs), problems) as folders:
        bundle = load_bundle(
            folders,
            prompts=args.prompts,
            judgements=find_hook("judgements") or (lambda folder: {}),
        )
    for line in problems:
        note(line)
    size = write_page(args.output, bundle)
    say(f"wrote {args.output} ({size / 1e6:.1f} MB)")
    return 0


def _print_short(args: argparse.Namespace) -> int:
    """Print comparable runs like `compare --markdown`; print only the scores of runs that are not comparable."""
    from evalharness.records.store import read_manifest
    from evalharness.results.comparison import comparable_groups, compare_runs
    from evalharness.results.scored_run import load_scored_run
    from evalharness.results.summarize import summarize
    from evalharness.results.terminal.comparison import comparisons_as_markdown
    from evalharness.results.terminal.table import summary_as_markdown
    from evalharness.runs.study_file import some_run_folders

    folders = some_run_folders(args.runs)
    runs = [load_scored_run(folder) for folder in folders]
    groups, _ = comparable_groups(runs)
    parts = [
        comparisons_as_markdown(compare_runs([runs[i] for i in group], group))
        if len(group) > 1
        else summary_as_markdown(summarize(folders[group[0]]), read_manifest(folders[group[0]]))
        for group in groups
    ]
    write_text("--short", "-", "\n".join(parts))
    return 0
