"""One episode, readable in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evalharness.records.episode import Episode, Turn
from evalharness.report.text import printable


def _labelled(label: str, text: str, style: str = "") -> Table:
    """The text beside its label, however many lines it takes."""
    grid = Table.grid(padding=0)
    grid.add_column(width=12, no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style="bold"), Text(printable(text), style))
    return grid


def _turn(turn: Turn, episode: Episode) -> Iterator[RenderableType]:
    mark = "" if turn.valid else "  (not valid)"
    yield Text(f"── turn {turn.turn} · progress {100 * turn.progress:.0f} %{mark}", style="cyan")
    if turn.reasoning:
        yield _labelled("Reasoning", turn.reasoning, "dim")
    if turn.thought:
        yield _labelled("Thought", turn.thought, "italic")
    if turn.action is not None:
        yield _labelled("Action", turn.action, "green")
    else:
        yield _labelled("Reply", turn.reply or "(empty)", "red")
    if turn.format_errors:
        yield _labelled("Format", ", ".join(turn.format_errors), "red")
    yield _labelled("Observation", turn.observation)
    for index in turn.subgoals_completed:
        if index < len(episode.subgoals):
            yield _labelled("Subgoal", episode.subgoals[index], "magenta")


def trajectory(episode: Episode) -> Iterator[RenderableType]:
    """Line by line; nothing in it can steer the terminal."""
    outcome = "success" if episode.success else "no success"
    sample = f", sample {episode.sample}" if episode.sample else ""
    yield Text(f"{episode.task_id}{sample} · {episode.kind} · {episode.difficulty}", style="bold")
    yield _labelled("Goal", episode.goal)
    yield _labelled("Observation", episode.first_observation)
    trims = {trim.turn: trim.dropped for trim in episode.trims}
    for turn in episode.turns:
        if turn.turn in trims:
            yield Text(f"(context full: the {trims[turn.turn]} oldest turns were dropped)", style="yellow")
        yield from _turn(turn, episode)
    yield Text(
        f"── {outcome}, progress {100 * episode.progress:.0f} %, {len(episode.turns)} turns, "
        f"ended by {episode.ended_by}"
        + ("" if episode.solved == episode.success else ", simulator disagrees"),
        style="bold green" if episode.success else "bold",
    )
