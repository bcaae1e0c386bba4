"""Write a table as Markdown or LaTeX (booktabs); every text is escaped."""

from __future__ import annotations

import re

from evalharness.base.grouping import group_by_key
from evalharness.base.text import printable
from evalharness.results.tabular.table import Column, Row, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u00a7": r"\S{}",
    "\u2020": r"$^\dagger$",
    "\u2021": r"$^\ddagger$",
    "\u2248": r"$^\approx$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def latex_text(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in printable(text, single_line=True))


def markdown_text(text: str) -> str:
    """Escape text for a Markdown table, so that it is neither markup nor HTML."""
    safe_text = (
        printable(text, single_line=True).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    special = "\\`*_{}#|~" + ("[]" if _LINK.search(safe_text) else "")
    return "".join(f"\\{c}" if c in special else c for c in safe_text)


_LINK = re.compile(r"\][(\[:]")
"""Brackets are escaped only if the text matches, because other brackets are not a Markdown link."""


def _markdown_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _with_interval(row: Row, column: Column) -> str:
    cell = row.cell(column)
    ends = f" [{cell.interval(column)}]" + ("" if row.ours else "~") if cell.ci95 else ""
    return (
        cell.shown(column) + ("*" if column.key in row.underlined and cell.value is not None else "") + ends
    )


def markdown(table: Table) -> str:
    """Return the table as Markdown. Rows of the user's runs are bold if the table also has published rows."""
    headings = [f"{column.group} {column.name}".strip() for column in table.columns]
    has_groups = any(row.group for row in table.rows)
    first = ["series", table.first or "model"] if has_groups else [table.first or " "]
    lines = [
        _markdown_row(*first, *map(markdown_text, headings)),
        "|" + "---|" * len(first) + "---:|" * len(headings),
    ]
    all_ours = all(row.ours for row in table.rows)
    for row in table.rows:
        name = markdown_text(row.name + row.marks)
        name = f"**{name}**" if row.ours and not all_ours else name
        cells = (markdown_text(_with_interval(row, column)) for column in table.columns)
        lines.append(_markdown_row(*([markdown_text(row.group)] if has_groups else []), name, *cells))
    lines += ["", *(f"{markdown_text(note)}  " for note in table.notes)]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """Return a `tabular` for the booktabs package. Numbers of held-in families are underlined; runs are bold."""
    spans: list[tuple[str, int]] = []
    for column in table.columns:
        if spans and spans[-1][0] == column.group:
            spans[-1] = (column.group, spans[-1][1] + 1)
        else:
            spans.append((column.group, 1))
    lines = [
        "% needs \\usepackage{booktabs}",
        f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        "\\toprule",
    ]
    if any(group for group, _ in spans):
        heads = (f"\\multicolumn{{{n}}}{{c}}{{{latex_text(group)}}}" for group, n in spans)
        lines.append(" & ".join([latex_text(table.first or "Method"), *heads]) + r" \\")
        names = ["", *(latex_text(_capital(c.name)) for c in table.columns)]
    else:
        names = [latex_text(table.first or "Method"), *(latex_text(_capital(c.name)) for c in table.columns)]
    lines.append(" & ".join(names) + r" \\")
    for group, rows in group_by_key((row.group, row) for row in table.rows).items():
        lines.append("\\midrule")
        if group:
            lines.append(f"\\multicolumn{{{1 + len(table.columns)}}}{{c}}{{{latex_text(group)}}} \\\\")
        for row in rows:
            name = latex_text(row.name + row.marks)
            cells = [f"\\textbf{{{name}}}" if row.ours else name]
            cells += [_latex_cell(row, column) for column in table.columns]
            lines.append(" & ".join(cells) + r" \\")
            if row.ours and any(cell.ci95 for cell in row.cells.values()):
                ends = (row.cell(column).interval(column) for column in table.columns)
                small = (f"{{\\scriptsize {text}}}" if text else "" for text in ends)
                lines.append(" & ".join(["", *small]) + r" \\")
    lines.append("\\bottomrule")
    width = 1 + len(table.columns)
    lines += [
        f"\\multicolumn{{{width}}}{{@{{}}p{{\\linewidth}}@{{}}}}{{\\scriptsize {latex_text(note)}}} \\\\"
        for note in table.notes
    ]
    lines.append("\\end{tabular}")
    return "\n".join(lines) + "\n"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _latex_cell(row: Row, column: Column) -> str:
    cell = row.cell(column)
    text = latex_text(cell.shown(column))
    return f"\\underline{{{text}}}" if column.key in row.underlined and cell.value is not None else text
