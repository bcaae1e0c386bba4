"""Scripts, trajectories and the table of their verification, for a terminal. All of it is a model's text: escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evalharness.base.text import duration, printable
from evalharness.training.synthesis.outcome import stored_script, stored_turns
from evalharness.training.synthesis.script import Script
from evalharness.training.synthesis.signals import MEANINGS, Signal
from evalharness.training.synthesis.trajectory import MasterTurn, Turn


def _line(text: str, style: str = "", indent: int = 0) -> RenderableType:
    """Folded lines keep the indentation."""
    return Padding(Text(printable(text, single_line=True), style=style), (0, 0, 0, indent), expand=False)


def verification_table(summary: Mapping[str, Any]) -> RenderableType:
    """How many passed at which call, what was wrong with the other replies, and why personas were given up."""
    by_call = summary["signals_by_call"]
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("signal", no_wrap=True)
    table.add_column("what it says")
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
    return Group(table, "", *(_line(note, "dim") for note in _notes(summary)))


def _notes(summary: Mapping[str, Any]) -> Iterator[str]:
    finished, passed = summary["finished"], summary["passed"]
    share = f" ({100 * passed / finished:.1f} %)" if finished else ""
    yield f"{summary['kind']} by {summary['model']}: {passed} of {finished} personas passed{share}" + (
        f"; {summary['left']} left to make" if summary["left"] else ""
    )
    tokens = summary["tokens"]
    spent = (
        f"{summary['calls']} calls, {tokens['prompt']:,} prompt + {tokens['completion']:,} completion tokens"
    )
    if summary["cost"] is not None:
        spent += f", cost {summary['cost']:.2f}"
    if summary["wall_s"]:
        spent += f", {duration(summary['wall_s'])}"
    yield spent
    if summary["structured_output"] is False:
        yield "without structured output (the server does not have it, or --plain)"
    if data := summary.get("data"):
        turns = data["player_turns"]
        errors = f"{data['error_turns']} with an error, {data['refine_turns']} that fix one"
        yield f"training data: {data['samples']} conversations, {turns} player turns ({errors})"


def script_lines(script: Script) -> Iterator[RenderableType]:
    """The goal, the tree of places and objects, the actions."""
    yield _line(f"Goal: {script.goal}", "bold")
    yield from (_line(f"- {condition}", indent=2) for condition in script.completion_conditions)
    yield _line(f"At the start: {script.environment.initial_state}")
    yield _line(f"Player: {script.environment.player.information}")
    yield _line("Places and objects:", "bold")
    for depth, name, place in script.environment.walk():
        about = "; ".join(filter(None, (place.location, place.information)))
        yield _line(f"{name}: {about}" if about else name, indent=2 + 2 * depth)
        for key, text in place.secrets():
            yield _line(f"({key}: {text})", "dim", indent=4 + 2 * depth)
    yield _line("Actions:", "bold")
    for name, action in script.actions.items():
        yield _line(f"{name}    {action.verification_code}", indent=2)
        if action.special_format:
            yield _line(f"free: {action.special_format}", "dim", indent=4)
        for parameter, values in action.parameters.items():
            yield _line(f"{parameter}: {', '.join(values) if values else 'anything'}", "dim", indent=4)


def turn_lines(turns: Sequence[Turn]) -> Iterator[RenderableType]:
    """Dungeon Master and player in turn; errors marked at the turn that says so."""
    for place, turn in enumerate(turns):
        if isinstance(turn, MasterTurn):
            errors = f"  ! {', '.join(turn.errors)} error" if turn.errors else ""
            yield _line(f"{place:3} DM      {turn.progress_rate:4.0%}{errors}", "red" if errors else "cyan")
            yield _line(f"({turn.thought})", "dim", indent=4)
            yield from (_line(text, indent=4) for text in turn.observation.splitlines() or [""])
        else:
            yield _line(f"{place:3} Player", "green")
            yield _line(f"Thought: {turn.thought}", indent=4)
            yield _line(f"Action: {turn.action}", "bold", indent=4)


def record_lines(folder: Path, record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """A finished persona of `folder`: what became of each call, then the script or the trajectory."""
    yield _line(f"{record['key']}: {record['persona']}", "bold")
    first = record["calls"] - len(record["mistakes"]) + 1
    for number, (signal, mistakes) in enumerate(
        zip(record["signals"], record["mistakes"], strict=False), first
    ):
        yield _line(f"call {number}: {signal}", "green" if signal == Signal.OK else "red")
        yield from (_line(mistake, indent=4) for mistake in mistakes)
    if not record["mistakes"]:
        yield _line(f"{record['signals'][-1]}: {MEANINGS[Signal(record['signals'][-1])]}", "red")
    if record["script"] is None:
        return
    script = stored_script(folder, record)
    if turns := stored_turns(folder, record):
        yield _line(f"Goal: {script.goal}", "bold")
        yield from turn_lines(turns)
    else:
        yield from script_lines(script)
