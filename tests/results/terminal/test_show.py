"""`evalharness show`: one table that fits a small terminal, format errors by kind, long trajectories."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_episode, make_run, make_task
from rich.console import Console

from evalharness.cli import main
from evalharness.records.store import RunStore, read_episodes
from evalharness.records.summary import Reference, Summary
from evalharness.results.report import records
from evalharness.results.summarize import summarize
from evalharness.results.tables import rows_of
from evalharness.results.terminal.table import print_summary
from evalharness.results.terminal.trajectory import FOLDED_LINES, trajectory

SOLVED, HALF = (True, 1.0), (False, 0.5)
SIZES = {"alfworld": 134, "babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
SUCCESS, PROGRESS = ([measure, "%", "[95", "%", "CI]"] for measure in ("success", "progress"))
TITLES = {"alfworld": "ALFWorld", "babyai": "BabyAI", "sciworld": "ScienceWorld", "pddl": "PDDL"}


def shown(what: Any, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(what)
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.fixture
def whole(tmp_path: Path) -> Summary:
    """The summary of a run of all five families, with floors and ceilings."""
    folder = make_run(tmp_path / "run", {family: [SOLVED] * n for family, n in SIZES.items()}, name="m")
    summary = summarize(folder)
    rates = ("success_rate", "progress_rate")
    reference = Reference(
        floor=dict.fromkeys(rates, 0.125),
        floor_se=dict.fromkeys(rates, 0.0),
        ceiling=dict.fromkeys(rates, 1.0),
        chance_corrected=dict.fromkeys(rates, -0.25),
        chance_corrected_ci95=dict.fromkeys(rates, (-1.0, 1.0)),
    )
    families = {f: row.model_copy(update={"reference": reference}) for f, row in summary.families.items()}
    return summary.model_copy(update={"families": families})


def test_five_families_are_one_table_on_a_small_terminal(whole: Summary) -> None:
    console = Console(width=80, height=24, file=io.StringIO(), record=True)
    print_summary(console, whole, TITLES)
    lines = console.export_text().splitlines()
    assert len(lines) < 23  # the prompt stands below
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("held-out success 100.0 % [")
    assert lines[0].rstrip().endswith(", 282 tasks")
    [heading] = [line for line in lines if line.startswith("family")]
    assert heading.split() == ["family", "tasks", *SUCCESS, *PROGRESS]
    [row] = [line for line in lines if line.startswith("ScienceWorld")]
    assert row.split() == ["ScienceWorld", "90", "100.0", "[95.9,", "100.0]", "100.0", "[95.9,", "100.0]"]
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("width", [80, 10_000])
def test_grounding_floor_and_ceiling_are_shown_when_asked_for_at_any_width(
    whole: Summary, width: int
) -> None:
    texts = {}
    for verbose in (False, True):
        console = Console(width=width, file=io.StringIO(), record=True)
        print_summary(console, whole, TITLES, verbose=verbose)
        texts[verbose] = console.export_text()
    for name in ("grounding", "floor", "ceiling", "corrected"):
        assert (name in texts[False], name in texts[True]) == (False, True)
    [row] = [line.split() for line in texts[True].splitlines() if line.startswith("  PDDL")][:1]
    assert row == ["PDDL", "12.5", "100.0", "-25.0", "[-100.0,", "100.0]"]


def test_format_errors_are_counted_by_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED] * 3})
    task = make_task("babyai", 1)
    episode = made_episode(task, 1)
    bad = tuple(
        replace(turn, action=None, format_errors=kinds)
        for turn, kinds in zip(
            episode.turns, (("truncated",), ("truncated", "thought_only"), ()), strict=True
        )
    )
    with RunStore(folder) as store:
        store.append(replace(episode, turns=bad))
    assert summarize(folder).format_error_kinds == {"thought_only": 1, "truncated": 2}
    assert main(["show", str(folder)]) == 0
    assert "2 of 12 turns (16.7 %): truncated 2, thought only 1" in capsys.readouterr().out


@pytest.mark.slow
def test_efficiency_and_the_server_are_shown_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "--model", "oracle", "--suite", "open", "--tasks", "babyai", "--limit", "1"]
    assert main([*run, "-o", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "bound by" not in capsys.readouterr().out
    assert main(["show", str(tmp_path / "run"), "--verbose"]) == 0
    assert "bound by" in capsys.readouterr().out


def test_a_long_text_is_folded_and_raw_shows_all_of_it() -> None:
    long = "\n".join(f"thing {i}" for i in range(100))
    episode = made_episode(make_task("babyai", 1))
    turn = replace(
        episode.turns[0], reasoning="why", thought="", reply="Action: look\nand more", observation=long
    )
    episode = replace(episode, turns=(turn,))
    folded, raw = (
        "\n".join(line for part in trajectory(episode, raw=r) for line in shown(part, 80))
        for r in (False, True)
    )
    assert f"thing {FOLDED_LINES - 1}" in folded
    assert f"thing {FOLDED_LINES}\n" not in folded
    assert "more characters (--raw)" in folded
    assert "thing 99" in raw
    assert "--raw" not in raw
    assert "and more" in raw
    assert "and more" not in folded
    assert "why" in folded
    assert "why" in raw


@pytest.mark.slow
def test_a_thought_without_an_action_is_shown_once() -> None:
    (episode,) = [made_episode(make_task("babyai", 0), turns=1)]
    turn = replace(episode.turns[0], reply="Thought: I wonder.", thought="I wonder.", action=None)
    parts = trajectory(replace(episode, turns=(turn,)))
    assert "\n".join(line for part in parts for line in shown(part, 80)).count("I wonder.") == 1


def test_the_reasoning_of_a_turn_is_shown_and_in_the_tables(tmp_path: Path) -> None:
    [episode] = read_episodes(make_run(tmp_path / "run", {"babyai": [(True, 1.0)]}))
    turn = replace(episode.turns[0], reasoning="the door\x1b[2J is locked", reasoning_tokens=4)
    episode = replace(episode, turns=(turn, *episode.turns[1:]))
    out = "\n".join(line for part in trajectory(episode) for line in shown(part, 100))
    assert "Reasoning" in out
    assert "is locked" in out
    assert "\x1b[2J" not in out
    first = records.trajectory(episode, None)["turns"][0]
    assert (first["reasoning"], first["reasoning_tokens"]) == (turn.reasoning, 4)
    row, turns = rows_of(episode)
    assert (row["reasoning_tokens"], turns[0]["reasoning"]) == (4, turn.reasoning)
