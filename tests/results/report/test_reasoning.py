"""Reasoning is shown apart from the thought."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

from made_runs import make_run
from rich.console import Console

from evalharness.records.store import read_episodes
from evalharness.results.report.trajectory import trajectory
from evalharness.results.tables import rows_of
from evalharness.results.viewer import records


def test_the_reasoning_of_a_turn_is_shown_and_in_the_tables(tmp_path: Path) -> None:
    [episode] = read_episodes(make_run(tmp_path / "run", {"babyai": [(True, 1.0)]}))
    turn = replace(episode.turns[0], reasoning="the door\x1b[2J is locked", reasoning_tokens=4)
    episode = replace(episode, turns=(turn, *episode.turns[1:]))
    out = StringIO()
    console = Console(file=out, width=100)
    for part in trajectory(episode):
        console.print(part)
    assert "Reasoning" in out.getvalue()
    assert "is locked" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()
    first = records.trajectory(episode, None)["turns"][0]
    assert (first["reasoning"], first["reasoning_tokens"]) == (turn.reasoning, 4)
    row, turns = rows_of(episode)
    assert (row["reasoning_tokens"], turns[0]["reasoning"]) == (4, turn.reasoning)
