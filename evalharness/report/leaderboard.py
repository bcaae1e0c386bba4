"""The leaderboard as text, Markdown, LaTeX and flat rows. The page is in `page`."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.analysis.standings import HELD_OUT, MEASURES, Leaderboard, Standing
from evalharness.report.text import printable

HELD_IN_NOTE = "* the method's training data was sampled from this family"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def with_interval(standing: Standing, column: str) -> str:
    """`44.8 [36.6, 53.2]`, or the bare number where there is no interval."""
    text = percent(standing.values.get(column))
    if column in standing.ci95:
        low, high = standing.ci95[column]
        text += f" [{100 * low:.1f}, {100 * high:.1f}]"
    return text


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
    return f"{standing.name} ({standing.series})" if board.sorted_by and repeated else standing.name


def footnotes(board: Leaderboard) -> list[str]:
    """What the marks mean, and what each of our runs is."""
    notes = list(board.notes)
    if any(standing.held_in for standing in board.standings):
        notes.append(HELD_IN_NOTE)
    for standing in board.standings:
        if standing.ours:
            about = [f"suite {standing.suite}", f"at most {standing.max_turns} turns", *standing.notes]
            notes.append(
                printable(f"{standing.name} ({standing.folder}): {'; '.join(about)}", single_line=True)
            )
    return notes


def _measure_table(board: Leaderboard, measure: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(f"{board.measures[measure]} %", overflow="fold")
    for family in board.groups:
        family = "held-out" if family == HELD_OUT else family
        table.add_column(family, justify="right", no_wrap=True)
    for series, standings in grouped(board):
        if series:
            table.add_row(Text(printable(series, single_line=True), style="dim"))
        indent = "  " if series else ""
        for standing in standings:
            cells = []
            for family in board.groups:
                column = f"{family}_{measure}"
                cells.append(
                    percent(standing.values.get(column))
                    + ("*" if board.is_held_in(standing, column) else " ")
                )
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
    for heading in ("n", first, "corrected", second, "corrected"):
        table.add_column(heading, justify="right", no_wrap=True)
    for family in board.groups:
        if standing.values.get(f"{family}_success") is None:
            continue
        played, expected = (standing.played or {}).get(family, (0, 0))
        cells = [] if family != HELD_OUT else [""]
        if family != HELD_OUT:
            cells.append(str(played) if played == expected else f"{played}/{expected}")
        for measure in MEASURES:
            column = f"{family}_{measure}"
            cells += [with_interval(standing, column), percent(standing.chance_corrected.get(column))]
        table.add_row("held-out" if family == HELD_OUT else board.titles[family], *cells)
    return table


def print_leaderboard(console: Console, board: Leaderboard) -> None:
    for measure in MEASURES:
        console.print(_measure_table(board, measure))
        console.print()
    for standing in board.standings:
        if standing.ours:
            console.print(_own_table(standing, board))
            console.print()
    if any(standing.ours for standing in board.standings):
        console.print(Text("< a run of ours; corrected: 0 is chance, 100 the best known plans"), style="dim")
    for note in footnotes(board):
        console.print(Text(note), style="dim")


def text_leaderboard(board: Leaderboard) -> str:
    """As `print_leaderboard` shows it, 80 columns wide."""
    buffer = io.StringIO()
    print_leaderboard(Console(file=buffer, width=80), board)
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
            cells.append(f"{pair} \\*" if board.is_held_in(standing, f"{family}_success") else pair)
        name = _markdown_text(standing.name)
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
                cells = [with_interval(standing, f"{family}_{measure}") for measure in MEASURES]
                lines.append(f"| {board.titles.get(family, 'Held-out')} | " + " | ".join(cells) + " |")
    lines += ["", *(f"{_markdown_text(note)}  " for note in footnotes(board))]
    return "\n".join(lines) + "\n"


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
                cells.append(f"\\underline{{{cell}}}" if board.is_held_in(standing, column) else cell)
            lines.append(" & ".join(cells) + r" \\")
    lines += ["\\bottomrule", "\\end{tabular}"]
    lines += [f"% {printable(note, single_line=True)}" for note in footnotes(board)]
    return "\n".join(lines) + "\n"
