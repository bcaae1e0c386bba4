"""Format the counts of verified replies as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalharness.base.text import duration
from evalharness.base.watching import dim
from evalharness.training.synthesis.signals import MEANINGS, Signal


def make_verification_table(summary: Mapping[str, Any]) -> RenderableType:
    """Return a table with a row for each signal: number of replies by call, and number of personas rejected with it."""
    by_call = summary["signals_by_call"]
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("signal", no_wrap=True)
    table.add_column("meaning")
    for call in by_call:
        table.add_column(f"call {call}", justify="right", no_wrap=True)
    table.add_column("given up", justify="right", no_wrap=True)
    seen = {signal for counts in by_call.values() for signal in counts} | set(summary["rejected"])
    for signal in Signal:
        if signal == Signal.OK or signal not in seen:
            continue
        given_up = summary["rejected"].get(signal, 0)
        counts = [str(by_call[call].get(signal, 0) or "-") for call in by_call]
        table.add_row(signal, MEANINGS[signal], *counts, str(given_up or "-"))
    table.add_section()
    passed = [str(by_call[call].get(Signal.OK, 0) or "-") for call in by_call]
    table.add_row(Text("passed", style="bold"), "", *passed, "")
    replies = [str(sum(by_call[call].values())) for call in by_call]
    table.add_row("replies", "", *replies, str(sum(summary["rejected"].values()) or "-"))
    return Group(table, "", *(dim(note) for note in _list_notes(summary)))


def _list_notes(summary: Mapping[str, Any]) -> Iterator[str]:
    finished, passed = summary["finished"], summary["passed"]
    share = f" ({100 * passed / finished:.1f} %)" if finished else ""
    yield f"{summary['kind']} by {summary['model']}: {passed} of {finished} personas passed{share}" + (
        f"; {summary['left']} left to make" if summary["left"] else ""
    )
    tokens = summary["tokens"]
    spent = (
        f"{summary['calls']} calls, {tokens['prompt']:,} prompt + {tokens['completion']:,} completion tokens"
    )
    if summary["wall_s"]:
        spent += f", {duration(summary['wall_s'])}"
    yield spent
    if summary["structured_output"] is False:
        yield "without structured output (not supported by the server, or --plain)"
    if data := summary.get("data"):
        turns = data["player_turns"]
        errors = f"{data['error_turns']} with an error, {data['refine_turns']} corrections"
        yield f"training data: {data['samples']} conversations, {turns} player turns ({errors})"
