"""The leaderboard as text, Markdown, LaTeX and flat rows. The page is in `page`."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.analysis.score import HELD_OUT, MEASURES
from evalharness.analysis.standings import Leaderboard, Standing
from evalharness.report.terminal import console_for
from evalharness.report.text import printable

HELD_IN, OWN_LABELS, PART, DEVIATES = "*", "#", "\u2020", "\u2021"
"""Marks behind a number: star, number sign, dagger, double dagger."""
HELD_IN_NOTE = f"{HELD_IN} the method's training data was sampled from this family"
OWN_LABELS_NOTE = (
    f"{OWN_LABELS} by labels of ours, not by the published ones: another scale (in the held-out score, too)"
)
PART_NOTE = f"{PART} of a part of the family only; sorted below the rows that have all of it"
DEVIATES_NOTE = (
    f"{DEVIATES} not by the protocol of the other rows: prompts, token limits or sampling as named below"
)
CORRECTED_NOTE = (
    "corrected: 0 is chance, 100 the best known plans; chance chooses at random among the valid actions, which it is "
    "handed and a model is not; its interval holds the floor's own error"
)
VERIFIED_NOTE = (
    "verified: every action was replayed here, and the numbers follow from the actions; not verified: nobody has done "
    "that here; who chose the actions is the submitter's word"
)
DERIVED_MARK = "~"
DERIVED_NOTE = (
    f"{DERIVED_MARK} derived from the printed rates and the number of tasks (Wilson), not from episodes"
)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def with_interval(standing: Standing, column: str, mark: str = "") -> str:
    """`44.8\u2020 [36.6, 53.2]`, or the bare number where there is no interval."""
    return _limited(standing.values.get(column), standing.ci95.get(column), mark)


def corrected_with_interval(standing: Standing, column: str) -> str:
    return _limited(standing.chance_corrected.get(column), standing.chance_corrected_ci95.get(column))


def _limited(value: float | None, limits: tuple[float, float] | None, mark: str = "") -> str:
    text = percent(value) + mark
    return text if limits is None else f"{text} [{100 * limits[0]:.1f}, {100 * limits[1]:.1f}]"


def marks(board: Leaderboard, standing: Standing, column: str) -> str:
    """What a reader must know of a number before comparing it; "" where there is nothing, or no number."""
    if standing.values.get(column) is None:
        return ""
    return (
        (HELD_IN if board.is_held_in(standing, column) else "")
        + (OWN_LABELS if standing.has_own_labels(column) else "")
        + (PART if standing.is_incomplete(column) else "")
        + (DEVIATES if standing.deviations else "")
    )


def grouped(board: Leaderboard) -> Iterator[tuple[str | None, list[Standing]]]:
    """(series, its rows) in order; one group without a name when sorted by a column."""
    if board.sorted_by:
        yield None, list(board.standings)
        return
    groups: dict[str, list[Standing]] = {}
    for standing in board.standings:
        groups.setdefault(standing.series, []).append(standing)
    yield from groups.items()


def _name(standing: Standing, board: Leaderboard) -> str:
    """With its series where no heading names that: methods of one name were trained on several base models."""
    repeated = sum(other.name == standing.name for other in board.standings) > 1
    name = _named(standing)
    return f"{name} ({standing.series})" if board.sorted_by and repeated else name


def footnotes(board: Leaderboard) -> list[str]:
    """What the marks mean, and what each of our runs is."""
    notes = list(board.notes)
    if any(not s.ours and s.values.get(f"{HELD_OUT}_success") is not None for s in board.standings):
        notes.append(DERIVED_NOTE)
    if any(standing.held_in for standing in board.standings):
        notes.append(HELD_IN_NOTE)
    if any(s.has_own_labels(column) for s in board.standings for column in board.columns):
        notes.append(OWN_LABELS_NOTE)
    if any(standing.incomplete for standing in board.standings):
        notes.append(PART_NOTE)
    if any(standing.deviations for standing in board.standings):
        notes.append(DEVIATES_NOTE)
    if any(standing.verification for standing in board.standings):
        notes.append(VERIFIED_NOTE)
    for standing in board.standings:
        if standing.ours:
            about = [f"suite {standing.suite}", f"at most {standing.max_turns} turns"]
            about += [*standing.deviations, *standing.notes]
            whose = standing.submitter or standing.folder
            notes.append(printable(f"{standing.name} ({whose}): {'; '.join(about)}", single_line=True))
    return notes


def _named(standing: Standing) -> str:
    """With what is known of its verification."""
    return f"{standing.name} [{standing.verification}]" if standing.verification else standing.name


def _measure_table(board: Leaderboard, measure: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(f"{board.measures[measure]} %", overflow="fold")
    for family in board.groups:
        family = "held-out" if family == HELD_OUT else family
        table.add_column(family, justify="right", no_wrap=True)
    families = (*board.titles, HELD_OUT)
    widths = {
        family: max(len(marks(board, standing, f"{family}_{measure}")) for standing in board.standings)
        for family in families
    }
    for series, standings in grouped(board):
        if series:
            table.add_row(Text(printable(series, single_line=True), style="dim"))
        indent = "  " if series else ""
        for standing in standings:
            cells = []
            for family in families:
                column = f"{family}_{measure}"
                mark = marks(board, standing, column).ljust(widths[family])
                cells.append(percent(standing.values.get(column)) + mark)
            table.add_row(
                Text(
                    printable(
                        indent + _name(standing, board) + (" <" if standing.ours else ""), single_line=True
                    )
                ),
                *cells,
                style="bold" if standing.ours else None,
            )
    return table


def _own_table(standing: Standing, board: Leaderboard) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(printable(standing.name, single_line=True), overflow="fold")
    first, second = (f"{board.measures[measure]} % [95 % CI]" for measure in MEASURES)
    for heading in ("tasks", first, second):
        table.add_column(heading, justify="right", no_wrap=True)
    for family in board.groups:
        if standing.values.get(f"{family}_success") is None:
            continue
        tasks = "" if family == HELD_OUT else str((standing.played or {})[family])
        columns = [f"{family}_{measure}" for measure in MEASURES]
        title = "held-out" if family == HELD_OUT else board.titles[family]
        cells = [with_interval(standing, column, marks(board, standing, column)) for column in columns]
        table.add_row(title, tasks, *cells)
        if any(standing.chance_corrected.get(column) is not None for column in columns):
            corrected = [corrected_with_interval(standing, column) for column in columns]
            table.add_row(Text("  corrected", style="dim"), "", *corrected)
    return table


def _held_out_table(board: Leaderboard) -> Table:
    """Held-out success of every row that has it, as a rate and chance-corrected, with intervals."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("held-out success %", overflow="fold")
    for heading in ("[95 % CI]", "corrected [95 % CI]"):
        table.add_column(heading, justify="right", no_wrap=True)
    column = f"{HELD_OUT}_success"
    for series, standings in grouped(board):
        rows = [standing for standing in standings if standing.values.get(column) is not None]
        if series and rows:
            table.add_row(Text(printable(series, single_line=True), style="dim"))
        for standing in rows:
            name = ("  " if series else "") + _name(standing, board) + (" <" if standing.ours else "")
            derived = " " if standing.ours else DERIVED_MARK
            table.add_row(
                Text(printable(name, single_line=True)),
                with_interval(standing, column) + derived,
                corrected_with_interval(standing, column) + derived,
                style="bold" if standing.ours else None,
            )
    return table


def print_leaderboard(console: Console, board: Leaderboard) -> None:
    for measure in MEASURES:
        console.print(_measure_table(board, measure))
        console.print()
    held_out = _held_out_table(board)
    if held_out.row_count:
        console.print(held_out)
        console.print()
    for standing in board.standings:
        if standing.ours:
            console.print(_own_table(standing, board))
            console.print()
    if any(standing.ours for standing in board.standings):
        submitted = any(standing.submitter for standing in board.standings)
        console.print(
            Text(f"< a run {'of ours, or that was submitted' if submitted else 'of ours'}"), style="dim"
        )
    if any(value is not None for s in board.standings for value in s.chance_corrected.values()):
        console.print(Text(CORRECTED_NOTE), style="dim")
    for note in footnotes(board):
        console.print(Text(note), style="dim")


def text_leaderboard(board: Leaderboard) -> str:
    """As `print_leaderboard` shows it, 80 columns wide."""
    buffer = io.StringIO()
    print_leaderboard(console_for(buffer, width=80), board)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _headings(board: Leaderboard) -> list[str]:
    return [board.titles.get(family, "Held-out") for family in board.groups]


def _markdown_text(text: str) -> str:
    """Text of a user inside a Markdown table: shown as it is, no markup, no HTML."""
    safe = printable(text, single_line=True).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|~" else c for c in safe)


def markdown(board: Leaderboard) -> str:
    """A table of success / progress; our runs in bold, with their intervals in a table of their own."""
    lines = [
        "| series | model | " + " | ".join(_headings(board)) + " |",
        "|---|---|" + "---:|" * len(_headings(board)),
    ]
    for standing in board.standings:
        cells = []
        for family in board.groups:
            pair = " / ".join(percent(standing.values.get(f"{family}_{measure}")) for measure in MEASURES)
            column = f"{family}_success"
            if family == HELD_OUT and not standing.ours and column in standing.ci95:
                low, high = standing.ci95[column]
                pair = pair.replace(
                    " / ", f" \\[{100 * low:.1f}, {100 * high:.1f}\\]{_markdown_text(DERIVED_MARK)} / "
                )
            mark = _markdown_text(marks(board, standing, column))
            cells.append(f"{pair} {mark}" if mark else pair)
        name = _markdown_text(_named(standing))
        lines.append(
            f"| {_markdown_text(standing.series)} | {f'**{name}**' if standing.ours else name} | "
            + " | ".join(cells)
            + " |"
        )
    first, second = (board.measures[measure] for measure in MEASURES)
    lines += ["", f"{_capital(first)} / {second} in percent."]
    for standing in board.standings:
        if not standing.ours:
            continue
        lines += [
            "",
            f"| **{_markdown_text(standing.name)}** | {first} \\[95 % CI\\] | {second} \\[95 % CI\\] |",
            "|---|---:|---:|",
        ]
        for family in board.groups:
            if standing.values.get(f"{family}_success") is not None:
                cells = [
                    with_interval(
                        standing, column, marks(board, standing, column).replace(HELD_IN, f"\\{HELD_IN}")
                    )
                    for column in (f"{family}_{measure}" for measure in MEASURES)
                ]
                lines.append(f"| {board.titles.get(family, 'Held-out')} | " + " | ".join(cells) + " |")
    lines += ["", *(f"{_markdown_text(note)}  " for note in footnotes(board))]
    return "\n".join(lines) + "\n"


_LATEX_MARKS = {OWN_LABELS: r"\#", PART: r"$^\dagger$", DEVIATES: r"$^\ddagger$"}
_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in printable(text, single_line=True))


def latex(board: Leaderboard) -> str:
    """A `tabular` for the booktabs package; held-in cells underlined, as in the paper; our runs in bold."""
    headings = _headings(board)
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{l{'rr' * len(headings)}}}",
        "\\toprule",
        " & ".join(["Method", *(f"\\multicolumn{{2}}{{c}}{{{_latex_text(h)}}}" for h in headings)]) + r" \\",
        " & ".join(["", *[_capital(board.measures[measure]) for measure in MEASURES] * len(headings)])
        + r" \\",
    ]
    for series, standings in grouped(board):
        lines.append("\\midrule")
        if series:
            lines.append(f"\\multicolumn{{{1 + 2 * len(headings)}}}{{c}}{{{_latex_text(series)}}} \\\\")
        for standing in standings:
            name = _latex_text(_name(standing, board))
            cells = [f"\\textbf{{{name}}}" if standing.ours else name]
            for column in board.columns:
                cell = percent(standing.values.get(column))
                cell += "".join(_LATEX_MARKS.get(mark, "") for mark in marks(board, standing, column))
                cells.append(f"\\underline{{{cell}}}" if board.is_held_in(standing, column) else cell)
            lines.append(" & ".join(cells) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}"]
    lines += [f"% {printable(note, single_line=True)}" for note in footnotes(board)]
    return "\n".join(lines) + "\n"
