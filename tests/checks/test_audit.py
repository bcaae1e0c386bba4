"""Floors, ceilings and disagreements, from episodes to the table."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import audit
import pytest
from audit import range_of, write_ranges
from command_line import run_compass

from evalharness.records.episode import Episode, Turn
from evalharness.results.task_range import (
    TaskRange,
    chance_corrected,
    family_range,
    load_ranges,
)
from tests.records.test_store import make_episode


def replayed(turns: int, *, success: bool, solved: bool, subgoals: tuple[int, ...] = ()) -> Episode:
    """A replayed plan whose last turn completes `subgoals` of two."""
    listed = [
        Turn(i + 1, "", "Whatever it says.", "a", "o", 0.0, True) for i in range(turns - 1)
    ] + [
        Turn(turns, "", "Whatever it says.", "a", "o", len(subgoals) / 2, True, subgoals_completed=subgoals)
    ]  # fmt: skip
    return replace(
        make_episode(0), turns=tuple(listed), success=success, solved=solved, progress=len(subgoals) / 2,
        subgoals=("one", "two"), plan="oracle",
    )  # fmt: skip


def test_a_plan_in_time_sets_the_ceiling() -> None:
    row = range_of([replayed(12, success=True, solved=True, subgoals=(0, 1))], [])
    assert (row.plan_turns, row.ceiling_success, row.ceiling_progress, row.label_agrees) == (
        12,
        1.0,
        1.0,
        True,
    )
    assert row.floor_success is None


def test_a_plan_that_is_too_long_counts_as_far_as_it_gets_in_time() -> None:
    row = range_of([replayed(31, success=True, solved=True, subgoals=(0, 1))], [])
    assert (row.plan_turns, row.ceiling_success, row.ceiling_progress) == (31, 0.0, 0.0)


def test_a_label_that_never_matches_is_found_and_told() -> None:
    row = range_of([replayed(5, success=False, solved=True, subgoals=(1,))], [])
    assert not row.label_agrees
    assert row.why == "oracle: simulator solved, label not (progress 0.50, subgoal 0 never completed)"
    assert (row.plan_turns, row.ceiling_success, row.ceiling_progress) == (None, 0.0, 0.5)


def test_a_label_that_is_too_easy_is_found_and_told() -> None:
    row = range_of([replayed(5, success=True, solved=False, subgoals=(0, 1))], [])
    assert row.why == "oracle: label solved, simulator not"


def test_the_floor_is_the_mean_of_the_random_attempts() -> None:
    attempts = [
        replayed(5, success=s, solved=s, subgoals=(0, 1) if s else ()) for s in (True, False, False, False)
    ]
    row = range_of([replayed(5, success=True, solved=True, subgoals=(0, 1))], attempts)
    assert (row.floor_success, row.floor_progress, row.floor_samples) == (0.25, 0.25, 4)


def test_a_plan_that_does_not_exist_says_nothing() -> None:
    empty = replace(replayed(1, success=False, solved=False), turns=(), ended_by="policy_stopped")
    row = range_of([replayed(5, success=True, solved=True, subgoals=(0, 1)), empty], [])
    assert row.label_agrees


def test_chance_correction() -> None:
    assert chance_corrected(0.5, 0.4, 0.9) == pytest.approx(0.2)
    assert chance_corrected(0.3, 0.4, 0.9) == pytest.approx(-0.2)
    assert chance_corrected(0.5, 0.9, 0.9) is None


def row(task_id: str, floor: float, ceiling: float) -> TaskRange:
    return TaskRange(task_id, "hash", "easy", 5, ceiling, ceiling, floor, floor, 5, True, "")


def test_floor_and_ceiling_are_those_of_the_tasks_played() -> None:
    ranges = [row("toy/a", 0.0, 1.0), row("toy/b", 0.5, 1.0), row("toy/c", 1.0, 1.0)]
    ranges += [replace(each, max_turns=50, floor_success=1.0) for each in ranges]
    rates = {"success_rate": 0.5, "progress_rate": 0.625}
    result = family_range([("toy/a", "hash"), ("toy/b", "hash")], ranges, rates)
    assert result is not None
    assert result.floor["success_rate"] == 0.25
    assert result.chance_corrected["success_rate"] == pytest.approx(1 / 3)
    assert result.chance_corrected["progress_rate"] == pytest.approx(0.5)


@pytest.mark.parametrize("task", [("toy/a", "another"), ("toy/x", "hash")])
def test_a_task_of_other_content_has_no_reference(task: tuple[str, str]) -> None:
    assert family_range([task], [row("toy/a", 0.0, 1.0)], {}) is None


def test_reference_files_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row("toy/b", 1 / 3, 1.0),
        replace(row("toy/a", 0.0, 0.5), plan_turns=None, floor_success=None, why="x, y"),
    ]
    write_ranges(tmp_path / "toy.csv", rows)
    monkeypatch.setattr("evalharness.results.task_range.ranges_folder", lambda: tmp_path)
    load_ranges.cache_clear()
    read = load_ranges("toy")
    load_ranges.cache_clear()
    assert [each.task_id for each in read] == ["toy/a", "toy/b"]
    assert read[0] == rows[1]
    assert read[1].floor_success == pytest.approx(1 / 3, abs=1e-6)


def test_the_audit_of_an_environment(environment: dict[str, str], tmp_path: Path) -> None:
    options = ["-o", tmp_path / "audit", "--csv", tmp_path / "a.csv", "--json", tmp_path / "a.json"]
    done = subprocess.run(
        [sys.executable, audit.__file__, "compass", "--floor-samples", "2", *options],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    total = json.loads((tmp_path / "a.json").read_text())["families"]["compass"]
    assert (total["n"], total["ceiling_success"], total["disagreements"]) == (20, 1.0, 0)
    assert 0 < total["floor_progress"] <= 1
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 21


def test_scripted_policies_need_no_server(environment: dict[str, str], tmp_path: Path) -> None:
    done = run_compass(environment, tmp_path / "run", "--model", "reference", "--samples", 2)
    assert done.returncode == 0, done.stderr
