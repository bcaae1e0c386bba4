"""Without an exhibit: list the tables and figures of AgentRefine (ICLR 2025) and the data that fills each. With an
exhibit (table2, figure5, judge, ...): show its published rows, then yours, with 95 % intervals and paired differences.
docs/paper.md
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.base.paths import data_folder
from evalharness.cli.common import add_csv_option, add_json_option
from evalharness.cli.output import results_console, say, write_csv, write_json, write_text
from evalharness.cli.parser import CommandParser, argument

if TYPE_CHECKING:
    from evalharness.paper.exhibit import Exhibit, Filled, Given, Measured
    from evalharness.results.figures.looks import Style

HELP = "fill the paper's tables and figures with your rows"


def add_options(parser: CommandParser) -> None:
    argument(
        parser,
        "named EXHIBIT|PATH",
        "an exhibit, if any, then your data: run folders, studies, folders of these, data sets, mtbench folders",
        nargs="*",
    )
    argument(
        parser, "--others", "also show rows of other papers, with their protocols; means leave these rows out"
    )
    argument(
        parser,
        "--x KEY[=FILE]",
        "draw curves by this label, or by the values in FILE (CSV or JSON) for each folder",
    )
    argument(parser, "-o --output FILE", "draw the figure: .pdf, .svg or .png")
    argument(parser, "--latex FILE", "also write the table for booktabs ('-': to standard output)", type=str)
    argument(
        parser,
        "--style {screen,paper}",
        "style of a figure; paper: a serif font, no title inside",
        default="screen",
    )
    add_csv_option(parser, "the rows")
    add_json_option(parser)
    parser.loose = "named"


def run(args: argparse.Namespace, more: Mapping[str, Any] | None = None) -> int:
    """Run the command. `more` is added to the exhibit's JSON."""
    from dataclasses import replace

    from evalharness.envs import specs
    from evalharness.paper.exhibits import EXHIBITS, find_exhibit
    from evalharness.paper.named import read_named_paths
    from evalharness.paper.x_values import read_x

    first, *rest = args.named or [None]
    listing = first is None or Path(first).exists()
    exhibit = None if listing else find_exhibit(first)
    paths = [Path(name) for name in (args.named if listing else rest)]
    given = replace(
        read_named_paths(paths, specs()),
        others=args.others,
        x=read_x(args.x) if args.x else None,
        measured=find_measures(),
    )
    console = results_console(args)
    if exhibit is not None:
        return _show(args, exhibit, given, more or {})
    if args.output or args.latex or args.others or args.x:
        raise UserError(f"name an exhibit first: {', '.join(EXHIBITS)}")
    from evalharness.paper.exhibits import print_exhibits

    listed = [each.to_json(given) for each in EXHIBITS.values()]
    print_exhibits(console, listed, given.left_out)
    write_csv(args.csv, [{**row, **_join_lists(row)} for row in listed])
    write_json(args.json, {"schema": 1, "exhibits": listed, "left_out": list(given.left_out)})
    return 0


def _join_lists(row: Mapping[str, Any]) -> dict[str, str]:
    return {key: "; ".join(row[key]) for key in ("filled_by", "missing")}


def _show(args: argparse.Namespace, exhibit: Exhibit, given: Given, more: Mapping[str, Any]) -> int:
    from evalharness.paper.exhibit import SCHEMA
    from evalharness.paper.exhibits import print_filled
    from evalharness.results.tabular.markup import latex

    draw = _check_drawing(args.output)
    filled = exhibit.fill_marked(given)
    print_filled(results_console(args), filled)
    write_csv(args.csv, filled.rows())
    if args.latex:
        write_text("--latex", args.latex, "\n".join(latex(table) for table in filled.tables))
    tables = [table.to_json() for table in filled.tables]
    write_json(
        args.json,
        {
            "schema": SCHEMA,
            "exhibit": exhibit.name,
            "tables": tables,
            "missing": list(filled.missing),
            **more,
        },
    )
    if draw:
        _draw(args.output, exhibit, filled, args.style)
    return 0


_ENDINGS = (".pdf", ".svg", ".png")


def _check_drawing(output: Path | None) -> bool:
    """Return whether the user asked for a figure (`-o`). Raises UserError before any work if the file type is wrong."""
    from evalharness.results.figures import looks

    if output is None:
        return False
    if output.suffix not in _ENDINGS:
        raise UserError(
            f"-o {output}: a figure ends in .pdf, .svg or .png; a table is written with --csv or --latex"
        )
    looks.style()
    return True


def _draw(output: Path, exhibit: Exhibit, filled: Filled, look: Style) -> None:
    from evalharness.results.figures import looks

    if filled.figure is None:
        what = f"there is nothing to draw yet; {exhibit.command}"
        if exhibit.name.startswith("table"):
            what = "it is a table; write it with --latex FILE or --csv FILE"
        raise UserError(f"{exhibit.name}: {what}")
    with looks.style(look):
        looks.save_as(filled.figure(), output)
    say(f"wrote {output}")


def find_measures() -> Measured:
    """Return the functions that read data sets and judgements; None for a function of a package that is missing."""
    from evalharness.base.extensions import find_hook
    from evalharness.paper.exhibit import Measured

    def similarity(paths: Sequence[Path]) -> list[dict[str, Any]]:
        from evalharness.paper.similarity import compare_blocks

        rows, name = compare_blocks(paths, 0, data_folder())
        return [{**row, "embedding": name} for row in rows]

    return Measured(similarity, find_hook("error_turns"), find_hook("agreements"))
