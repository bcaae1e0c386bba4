"""Which tasks a selection names: kinds, difficulties, a file, a sample."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.config import make_config
from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.suites.draws import spread_sample
from evalharness.suites.selection import select

SPECS = specs()


def chosen(tasks: str, **more: int) -> list[Task]:
    families = select(SPECS, tasks, "open", data=None, **more)
    return [task for own in families.values() for task in own]


@pytest.mark.slow
def test_tasks_by_kind_and_difficulty() -> None:
    assert {task.kind for task in chosen("pddl:kind=gripper")} == {"gripper"}
    assert Counter(task.family for task in chosen("babyai:kind=GoTo*,pddl:kind=barman")) == {
        "babyai": 44,
        "pddl": 20,
    }
    hard = chosen("all:difficulty=hard")
    assert {task.difficulty for task in hard} == {"hard"}
    assert len({task.family for task in hard}) == 5
    both = chosen("pddl:kind=gripper:difficulty=hard")
    assert {(task.kind, task.difficulty) for task in both} == {("gripper", "hard")}


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ("pddl:kind=griper", "'gripper'"),
        ("pddl:difficulty=medium", "'medium'"),
        ("pddl:level=hard", "pddl:difficulty=hard"),
        ("all:kind=nowhere", "no task"),
        ("all:0-3", "--limit"),
        (f"pddl:{5000 * '9'}", "range of tasks"),
        ("pddl:0-59x", "range of tasks"),
    ],
)
def test_a_condition_that_holds_for_nothing_is_refused(tasks: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        chosen(tasks)


def test_a_sample_is_spread_over_kinds_and_the_same_every_time() -> None:
    drawn = chosen("pddl", draw=6)
    assert Counter(task.kind for task in drawn) == {
        "gripper": 2,
        "barman": 2,
        "blockworld": 1,
        "tyreworld": 1,
    }
    assert drawn == chosen("pddl", draw=6)
    assert [task.index for task in drawn] == sorted(task.index for task in drawn)
    assert [task.index for task in drawn] != list(range(6))
    assert drawn != spread_sample(chosen("pddl"), 6, seed=1)


def test_a_larger_sample_holds_the_smaller_one() -> None:
    tasks = chosen("babyai")
    samples = [{task.id for task in spread_sample(tasks, count, 0)} for count in (5, 28, 40, 500)]
    assert list(map(len, samples)) == [5, 28, 40, 112]
    assert all(small <= large for small, large in pairwise(samples))
    assert len({task.kind for task in spread_sample(tasks, 28, 0)}) == 28


def test_a_file_of_tasks_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "tasks.txt"
    file.write_text("# for a try\nbabyai:0-3\n\npddl/open/007  # a gripper\n")
    config = make_config({"model": "oracle", "suite": "open", "tasks": f"@{file}"})
    assert config.selection.tasks == "babyai:0-3,pddl/open/007"
    assert [task.id for task in chosen(config.selection.tasks)][-1] == "pddl/open/007"


def test_first_tasks_and_drawn_ones_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "run",
        "--model",
        "oracle",
        "--suite",
        "open",
        "--limit",
        "2",
        "--draw",
        "2",
        "-o",
        str(tmp_path / "r"),
    ]
    assert main(words) == 2
    assert "--draw" in capsys.readouterr().err


def test_a_very_long_name_of_a_family_is_answered_in_a_short_line() -> None:
    with pytest.raises(UserError, match=r"unknown family") as error:
        select(specs(), "x" * 100_000, "open", data=None)
    assert len(str(error.value)) < 400


def test_a_task_is_selected_by_the_name_that_the_environment_server_gives_it() -> None:
    (task,) = select(specs(), "babyai/open-0/017", "open", data=None, suite_seed=0)["babyai"]
    assert task.id == "babyai/open/017"
    with pytest.raises(UserError, match="unknown task"):
        select(specs(), "babyai/open-1/017", "open", data=None, suite_seed=0)
