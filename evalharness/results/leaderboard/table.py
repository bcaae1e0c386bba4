"""The leaderboard as text, Markdown and LaTeX. The page is in `page`."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalharness.base.terminal import console_for
from evalharness.base.text import printable
from evalharness.results.html.table import percent
from evalharness.results.paper.standings import STATED, Leaderboard, Standing
from evalharness.results.score import HELD_OUT, MEASURES

HELD_IN, OWN_LABELS, PART, DEVIATES = "*", "#", "\u2020", "\u2021"
"""Marks behind a number: star, number sign, dagger, double dagger."""
STATED_MARK = "\u00a7"
"""Behind a name: section sign."""
HELD_IN_NOTE = f"{HELD_IN} the method's training data was sampled from this family"
OWN_LABELS_NOTE = (
    f"{OWN_LABELS} by labels of ours, not by the published ones: another scale (in the held-out score, too)"
)
PART_NOTE = f"{PART} of a part of the family only; sorted below the rows that have all of it"
DEVIATES_NOTE = (
    f"{DEVIATES} not by the protocol of the other rows: prompts, token limits or sampling as named below"
)
CORRECTED_NOTE = (
    "corrected: 0 is chance, 100 the best known plans; chance: random valid action (it sees the list, your model does "
    "not); its interval includes the floor's own error"
)
VERIFIED_NOTE = (
    "verified: every action was replayed here, and the numbers follow from the actions; not verified: nobody has done "
    "that here"
)
STATED_NOTE = (
    f"{STATED_MARK} only stated, no replay shows it: {', '.join(STATED)}; a row without {DEVIATES} states the "
    "harness's own"
)
DERIVED_MARK = "~"
DERIVED_NOTE = f"{DERIVED_MARK} derived from the printed rates and the number of tasks, not from episodes"


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
    rows = board.standings
    verified = any(s.verification for s in rows)
    legend = {
        DERIVED_NOTE: any(not s.ours and s.values.get(f"{HELD_OUT}_success") is not None for s in rows),
        HELD_IN_NOTE: any(s.held_in for s in rows),
        OWN_LABELS_NOTE: any(s.has_own_labels(column) for s in rows for column in board.columns),
        PART_NOTE: any(s.incomplete for s in rows),
        DEVIATES_NOTE: any(s.deviations for s in rows),
        VERIFIED_NOTE: verified,
        STATED_NOTE: verified,
    }
    notes = [*board.notes, *(note for note, applies in legend.items() if applies)]
    for s in rows:
        if s.ours:
            about = [f"suite {s.suite}", f"at most {s.max_turns} turns", *s.deviations, *s.notes]
            notes.append(f"{s.name} ({s.submitter or s.folder}): {'; '.join(about)}")
    return [printable(note, single_line=True) for note in notes]


def _named(standing: Standing) -> str:
    """With what is known of its verification."""
    return f"{marked(standing)} [{standing.verification}]" if standing.verification else standing.name


def marked(standing: Standing) -> str:
    """The name, with a mark where the model behind it is only stated."""
    return standing.name + (STATED_MARK if standing.stated else "")


def _line(text: str, style: str | None = None) -> Text:
    return Text(printable(text, single_line=True), style=style or "")


def _table(first: str, others: Iterable[str]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _add_rows(table: Table, board: Leaderboard, cells: Callable[[Standing], list[str] | None]) -> Table:
    """A row for each standing that has cells, below a line that names the series."""
    for series, standings in grouped(board):
        rows = [(standing, found) for standing in standings if (found := cells(standing))]
        if series and rows:
            table.add_row(_line(series, "dim"))
        for standing, found in rows:
            name = ("  " if series else "") + _name(standing, board) + (" <" if standing.ours else "")
            table.add_row(_line(name), *found, style="bold" if standing.ours else None)
    return table


def _measure_table(board: Leaderboard, measure: str) -> Table:
    columns = [f"{family}_{measure}" for family in board.groups]
    widths = {column: max(len(marks(board, s, column)) for s in board.standings) for column in columns}

    def cells(standing: Standing) -> list[str]:
        return [
            percent(standing.values.get(column)) + marks(board, standing, column).ljust(widths[column])
            for column in columns
        ]

    headings = ("held-out" if family == HELD_OUT else family for family in board.groups)
    return _add_rows(_table(f"{board.measures[measure]} %", headings), board, cells)


def _own_table(standing: Standing, board: Leaderboard) -> Table:
    rates = (f"{board.measures[measure]} % [95 % CI]" for measure in MEASURES)
    table = _table(printable(standing.name, single_line=True), ("tasks", *rates))
    for family, title in zip(board.groups, _headings(board, "held-out"), strict=True):
        if standing.values.get(f"{family}_success") is None:
            continue
        tasks = "" if family == HELD_OUT else str((standing.played or {})[family])
        columns = [f"{family}_{measure}" for measure in MEASURES]
        table.add_row(title, tasks, *(standing_cell(board, standing, column) for column in columns))
        if any(standing.chance_corrected.get(column) is not None for column in columns):
            table.add_row(_line("  corrected", "dim"), "", *(corrected_cell(standing, c) for c in columns))
    return table


def standing_cell(board: Leaderboard, standing: Standing, column: str) -> str:
    mark = marks(board, standing, column)
    return percent(standing.values.get(column), standing.ci95.get(column), mark)


def corrected_cell(standing: Standing, column: str) -> str:
    return percent(standing.chance_corrected.get(column), standing.chance_corrected_ci95.get(column))


def _held_out_table(board: Leaderboard) -> Table:
    """Held-out success of every row that has it, as a rate and chance-corrected, with intervals."""
    column = f"{HELD_OUT}_success"

    def cells(standing: Standing) -> list[str] | None:
        value, derived = standing.values.get(column), " " if standing.ours else DERIVED_MARK
        found = percent(value, standing.ci95.get(column)), corrected_cell(standing, column)
        return None if value is None else [cell + derived for cell in found]

    return _add_rows(_table("held-out success %", ("[95 % CI]", "corrected [95 % CI]")), board, cells)


def print_leaderboard(console: Console, board: Leaderboard) -> None:
    own = [standing for standing in board.standings if standing.ours]
    tables = [_measure_table(board, measure) for measure in MEASURES]
    tables += [_held_out_table(board), *(_own_table(standing, board) for standing in own)]
    for table in tables:
        if table.row_count:
            console.print(table)
            console.print()
    notes = footnotes(board)
    if any(value is not None for s in board.standings for value in s.chance_corrected.values()):
        notes.insert(0, CORRECTED_NOTE)
    if own:
        submitted = any(standing.submitter for standing in own)
        notes.insert(0, f"< a run {'of ours, or that was submitted' if submitted else 'of ours'}")
    for note in notes:
        console.print(Text(note), style="dim")


def text_leaderboard(board: Leaderboard) -> str:
    """As `print_leaderboard` shows it, 80 columns wide."""
    buffer = io.StringIO()
    print_leaderboard(console_for(buffer, width=80), board)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _headings(board: Leaderboard, held_out: str = "Held-out") -> list[str]:
    return [board.titles.get(family, held_out) for family in board.groups]


def _markdown_text(text: str) -> str:
    """Text of a user inside a Markdown table: shown as it is, no markup, no HTML."""
    safe = printable(text, single_line=True).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|~" else c for c in safe)


def _markdown_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def markdown(board: Leaderboard) -> str:
    """A table of success / progress; our runs in bold, with their intervals in a table of their own."""

    def cell(standing: Standing, family: str) -> str:
        column = f"{family}_success"
        success, progress = (percent(standing.values.get(f"{family}_{measure}")) for measure in MEASURES)
        if family == HELD_OUT and not standing.ours and column in standing.ci95:
            low, high = standing.ci95[column]
            success += f" \\[{100 * low:.1f}, {100 * high:.1f}\\]{_markdown_text(DERIVED_MARK)}"
        return f"{success} / {progress} {_markdown_text(marks(board, standing, column))}".rstrip()

    headings = _headings(board)
    lines = [_markdown_row("series", "model", *headings), "|---|---|" + "---:|" * len(headings)]
    for standing in board.standings:
        name = _markdown_text(_named(standing))
        name = f"**{name}**" if standing.ours else name
        cells = (cell(standing, family) for family in board.groups)
        lines.append(_markdown_row(_markdown_text(standing.series), name, *cells))
    first, second = (board.measures[measure] for measure in MEASURES)
    lines += ["", f"{_capital(first)} / {second} in percent."]
    rates = [f"{name} \\[95 % CI\\]" for name in (first, second)]
    for standing in board.standings:
        if standing.ours:
            lines += ["", _markdown_row(f"**{_markdown_text(standing.name)}**", *rates), "|---|---:|---:|"]
            for family, title in zip(board.groups, headings, strict=True):
                if standing.values.get(f"{family}_success") is not None:
                    found = [standing_cell(board, standing, f"{family}_{measure}") for measure in MEASURES]
                    lines.append(_markdown_row(title, *(c.replace(HELD_IN, f"\\{HELD_IN}") for c in found)))
    lines += ["", *(f"{_markdown_text(note)}  " for note in footnotes(board))]
    return "\n".join(lines) + "\n"


_LATEX_MARKS = {OWN_LABELS: r"\#", PART: r"$^\dagger$", DEVIATES: r"$^\ddagger$"}
_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u00a7": r"\S{}",
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
    lines += [f"% {note}" for note in footnotes(board)]
    return "\n".join(lines) + "\n"
