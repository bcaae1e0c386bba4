"""Best-of-N as the page shows it: its question and two tables, as texts, which the page escapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalharness.results.best_of_n import BestOfN
from evalharness.results.curves import CURVE_NAMES
from evalharness.results.paper.print_best_of_n import shown_ks
from evalharness.results.score import HELD_OUT, MEASURES


def best_of_n_for_page(study: BestOfN) -> dict[str, Any]:
    return {
        "question": f"How much better is the best of {study.samples} attempts of {study.model} than a greedy one?",
        "tables": [_gain(study), _by_k(study)],
        "notes": list(study.notes),
    }


def _gain(study: BestOfN) -> dict[str, Any]:
    best = f"best of {study.samples}"
    named = {
        "greedy": [family.greedy for family in study.families],
        "one sample": [family.one_sample for family in study.families],
        best: [family.best for family in study.families],
    }
    rows = [
        _row(
            name,
            [[_percent(rates[measure]), ""] for rates in by_family for measure in MEASURES],
            name == best,
        )
        for name, by_family in named.items()
    ]
    gained = [
        [_percent(family.delta[measure], "+"), _interval(family.delta_ci95[measure], "+")]
        for family in study.families
        for measure in MEASURES
    ]
    titles = {**study.titles, HELD_OUT: "held-out"}
    return {
        "title": "what choosing the best gains",
        "first": "attempts",
        "columns": [[titles[family.family], measure] for family in study.families for measure in MEASURES],
        "rows": [*rows, _row("gained over greedy", gained)],
        "notes": ["percent; one sample: the mean of single samples; in small figures: 95 % interval"],
    }


def _by_k(study: BestOfN) -> dict[str, Any]:
    found = {(row["family"], row["curve"], row["k"]): row for row in study.curves}
    shown = shown_ks(study.samples)
    rows = [
        _row(study.titles[family], [_rate(found[family, curve, k]) for k in shown], group=name)
        for curve, name in CURVE_NAMES.items()
        for family in sorted({family for family, _, _ in found})
    ]
    return {
        "title": "by the number of attempts",
        "first": "",
        "columns": [["", f"k = {k}"] for k in shown],
        "rows": rows,
        "notes": [],
    }


def _row(name: str, cells: list[list[str]], ours: bool = False, group: str = "") -> dict[str, Any]:
    return {"group": group, "name": name, "ours": ours, "cells": [[*cell, False] for cell in cells]}


def _rate(row: Mapping[str, Any]) -> list[str]:
    return [_percent(row["rate"]), _interval((row["ci95_low"], row["ci95_high"]))]


def _interval(ends: tuple[float, float], sign: str = "") -> str:
    return f"{_percent(ends[0], sign)} to {_percent(ends[1], sign)}"


def _percent(rate: float, sign: str = "") -> str:
    return f"{100 * rate:{sign}.1f}".replace("-", "\N{MINUS SIGN}")
