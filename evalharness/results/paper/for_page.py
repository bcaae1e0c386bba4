"""The exhibits that a report's runs fill, as its page shows them: texts alone, which the page escapes."""

from __future__ import annotations

from typing import Any

from evalharness.results.paper import figure6, figure7
from evalharness.results.paper.exhibits import EXHIBITS
from evalharness.results.paper.given import Given
from evalharness.results.paper.table import Row, Table

_SLOW = frozenset({figure6.EXHIBIT.name, figure7.EXHIBIT.name})
"""Embeddings of many texts take minutes; their commands draw them."""


def exhibits_for_page(given: Given) -> list[dict[str, Any]]:
    """Every exhibit; with its tables where something given stands in it."""
    found = []
    for exhibit in EXHIBITS.values():
        entry = {**exhibit.to_json(given), "tables": []}
        if entry["filled_by"] and exhibit.name not in _SLOW:
            filled = exhibit.fill(given)
            entry |= {
                "tables": [table_for_page(table) for table in filled.tables],
                "missing": list(filled.missing),
            }
        found.append(entry)
    return found


def table_for_page(table: Table) -> dict[str, Any]:
    table = table.without_empty()
    return {
        "title": table.title,
        "first": table.first,
        "columns": [[column.group, column.name] for column in table.columns],
        "rows": [_row(row, table) for row in table.rows],
        "notes": list(table.notes),
    }


def _row(row: Row, table: Table) -> dict[str, Any]:
    cells = []
    for column in table.columns:
        cell = row.cell(column)
        interval = cell.interval(column, " to ") if row.ours else ""
        cells.append([cell.shown(column), interval, column.key in row.underlined and cell.value is not None])
    return {"group": row.group, "name": row.name + row.marks, "ours": row.ours, "cells": cells}
