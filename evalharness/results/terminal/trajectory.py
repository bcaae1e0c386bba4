"""Print one episode in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evalharness.base.text import printable, subgoal_words
from evalharness.records.episode import Episode, Turn

FOLDED_LINES, FOLDED_CHARACTERS = 12, 1200
"""Maximum number of lines and of characters of a text that is shown without `--raw`."""


def fold(text: str) -> str:
    """Return the beginning of a long text, and a line that counts the characters left out."""
    lines = text.split("\n")
    head = "\n".join(islice(lines, FOLDED_LINES))[:FOLDED_CHARACTERS]
    left = len(text) - len(head)
    # Print the whole text if the cut part needs no more space than the line that counts its characters.
    return (
        text
        if left < 80 and len(lines) <= FOLDED_LINES + 1
        else f"{head}\n… {left:,} more characters (--raw)"
    )


def _label_row(label: str, text: str, style: str = "", *, raw: bool = False) -> Table:
    """Return a row with a label on the left and the text on the right. `raw`: do not cut a long text."""
    grid = Table.grid(padding=0)
    grid.add_column(width=12, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style="bold"), Text(printable(text if raw else fold(text)), style))
    return grid


def _turn(turn: Turn, episode: Episode, raw: bool) -> Iterator[RenderableType]:
    mark = "" if turn.valid else "  (not valid)"
    yield Text(f"── turn {turn.turn} · progress {100 * turn.progress:.0f} %{mark}", style="cyan")
    if turn.reasoning:
        yield _label_row("Reasoning", turn.reasoning, "dim", raw=raw)
    if raw:
        calls = "".join(f"\n{call.name}({call.arguments})" for call in turn.calls)
        yield _label_row("Reply", (turn.reply + calls) or "(empty)", "" if turn.action else "red", raw=True)
    else:
        if turn.action is not None:
            if turn.thought:
                yield _label_row("Thought", turn.thought, "italic")
            yield _label_row("Action", turn.action, "green")
        else:
            yield _label_row("Reply", turn.reply or "(empty)", "red")
    if turn.format_errors:
        yield _label_row("Format", ", ".join(turn.format_errors), "red")
    yield _label_row("Observation", turn.observation, raw=raw)
    for index in turn.subgoals_completed:
        if index < len(episode.subgoals):
            label = episode.subgoals[index]
            yield _label_row("Subgoal", label if raw else subgoal_words(label), "magenta", raw=raw)


def trajectory(episode: Episode, *, raw: bool = False) -> Iterator[RenderableType]:
    """Yield the episode line by line; control characters are escaped. `raw`: print whole replies and uncut texts."""
    outcome = "success" if episode.success else "no success"
    sample = f", sample {episode.sample}" if episode.sample else ""
    yield Text(f"{episode.task_id}{sample} · {episode.kind} · {episode.difficulty}", style="bold")
    yield _label_row("Goal", episode.goal, raw=raw)
    yield _label_row("Observation", episode.first_observation, raw=raw)
    dropped = episode.dropped_before
    for turn in episode.turns:
        if turn.turn in dropped:
            yield Text(f"(context full: the {dropped[turn.turn]} oldest turns were dropped)", style="yellow")
        yield from _turn(turn, episode, raw)
    yield Text(
        f"── {outcome}, progress {100 * episode.progress:.0f} %, {len(episode.turns)} turns, "
        f"ended by {episode.ended_by}"
        + ("" if episode.solved == episode.success else ", simulator disagrees"),
        style="bold green" if episode.success else "bold",
    )
