"""Which tasks a perturbation touches, and the difference on these beside the diluted one."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from made_runs import made_episode, make_run, make_task
from rich.console import Console

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import load_prompt
from evalharness.records.episode import Episode
from evalharness.records.store import read_episodes
from evalharness.results.report.sweep import print_sweep
from evalharness.results.scored_run import load_scored_run
from evalharness.results.sweep import PLANS, sweep_of
from evalharness.results.touched import Touched, touched_tasks


def plan(family: str, index: int, *actions: str, goal: str = "", observation: str = "A room.") -> Episode:
    made = made_episode(make_task(family, index), 0, (True, 1.0), turns=len(actions))
    turns = tuple(
        replace(turn, action=action, observation=observation)
        for turn, action in zip(made.turns, actions, strict=True)
    )
    return replace(made, goal=goal, turns=turns)


def touched(family: str, name: str, *plans: Episode) -> Touched:
    spec = specs()[family]
    return touched_tasks(plans, PlayedSurface(spec, name), load_prompt(spec))


def ids(family: str, *indices: int) -> set[str]:
    return {f"{family}/agentboard/{i:03d}" for i in indices}


def test_an_action_that_no_plan_needs_touches_no_task_though_every_prompt_lists_it() -> None:
    found = touched(
        "alfworld", "P1",
        plan("alfworld", 0, "go to shelf 1", "take mug 1 from shelf 1"),
        plan("alfworld", 1, "go to sinkbasin 1", "clean mug 1 with sinkbasin 1"),
    )  # fmt: skip
    assert found.tasks == found.actions == ids("alfworld", 1)
    assert found.prompts == ids("alfworld", 0, 1)


def test_a_name_that_is_shown_touches_a_task_though_nobody_says_it() -> None:
    found = touched(
        "sciworld", "joined",
        plan("sciworld", 0, "look around"),
        plan("sciworld", 1, "look around", observation="You see flower pot 1."),
        plan("sciworld", 2, "look around", goal="Water flower pot 2."),
        plan("sciworld", 3, "focus on flower pot 3"),
    )  # fmt: skip
    assert found.tasks == ids("sciworld", 1, 2, 3)
    assert found.actions == ids("sciworld", 3)


@pytest.mark.parametrize("name", ["P5", "listing", "instruction", "P1+P5"])
def test_a_rewritten_prompt_touches_every_task(name: str) -> None:
    assert touched("alfworld", name, plan("alfworld", 0, "look")).tasks == ids("alfworld", 0)


def test_a_task_without_a_known_plan_is_judged_by_what_it_shows_first() -> None:
    found = touched("alfworld", "P2", plan("alfworld", 0))
    assert not found.tasks


def test_the_difference_on_touched_tasks_stands_beside_the_diluted_one(tmp_path: Path) -> None:
    """Ten tasks, four of them touched, all of which are lost."""
    runs = {
        name or "unperturbed": load_scored_run(
            make_run(tmp_path / str(name), {"alfworld": outcomes}, name="m", perturb=name)
        )
        for name, outcomes in (
            (None, [(True, 1.0)] * 10),
            ("P1", [(False, 0.0)] * 4 + [(True, 1.0)] * 6),
            ("P2", [(True, 1.0)] * 10),
        )
    }
    some, none = frozenset(ids("alfworld", 0, 1, 2, 3)), frozenset[str]()
    everything = frozenset(ids("alfworld", *range(10)))
    plain = sweep_of(runs)
    sweep = sweep_of(
        runs,
        {"P1": Touched(some, some, everything), "P2": Touched(none, none, everything)},
    )
    first, second = sweep.columns[1:]
    assert first.differences["success"].difference == pytest.approx(-0.4)
    alone = first.touched_differences["success"]
    assert (alone.n, alone.difference, alone.losses) == (4, -1.0, 4)
    assert (first.touched, first.prompts, second.touched) == (4, 10, 0)
    assert not second.touched_differences
    # Holm's table is what it was.
    assert [c.differences for c in sweep.columns] == [c.differences for c in plain.columns]
    console = Console(width=80, record=True, file=StringIO())
    print_sweep(console, sweep)
    text = console.export_text()
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    lines = [line.split() for line in text.splitlines()]
    assert [line[1:4] for line in lines if line[:1] == ["touched"]] == [
        ["4", "0.0", "-100.0"], ["4", "0.0", "-100.0"]
    ]  # fmt: skip
    flat = " ".join(text.split())
    assert "touched, of 10 tasks: P1 4 (4), P2 0 (0)" in flat
    assert "P2 changes the prompt of 10 tasks, but no word that these tasks need or show" in flat
    row = sweep.rows()[1]
    assert (row["touched"], row["success_difference"], row["success_touched_difference"]) == (4, -0.4, -1.0)


@pytest.mark.slow
def test_a_sweep_plays_the_known_plans_once_and_tells_what_they_need(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """P1 rewords clean, cool and heat: exactly the tasks of these kinds are touched."""
    folder, table, rows = tmp_path / "study", tmp_path / "s.json", tmp_path / "s.csv"
    options = [
        "sweep", "--suite", "open", "--tasks", "alfworld", "--limit", "6", "--model", "random", "--max-turns", "3",
        "--perturb", "P1", "-o", str(folder), "--json", str(table), "--csv", str(rows),
    ]  # fmt: skip
    assert main(options) == 0
    assert "known plans" in capsys.readouterr().err
    plans = list(read_episodes(folder / PLANS))
    wanted = sum(
        any((turn.action or "").split()[0] in ("clean", "cool", "heat") for turn in e.turns) for e in plans
    )
    assert 0 < wanted < 6
    column = json.loads(table.read_text())["columns"][1]
    assert (column["touched"], column["actions"], column["prompts"]) == (wanted, wanted, 6)
    assert column["touched_differences"]["progress"]["n"] == wanted
    found = list(csv.DictReader(rows.read_text().splitlines()))
    assert found[1]["touched"] == str(wanted)
    written = (folder / PLANS / "episodes.jsonl").read_bytes()
    assert main(options) == 0
    assert (folder / PLANS / "episodes.jsonl").read_bytes() == written
