"""Splits: what may be trained on, in real families with short suites."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, Task
from evalharness.rl.server.tasks import RequestedTasks, UnknownTaskError, load_table
from evalharness.suites.excluded import task_forms
from evalharness.suites.open import load_open
from evalharness.suites.selection import family_tasks, parse_seeds

HEAD = 4


def short(family: str) -> EnvSpec:
    """A family whose suites of other seeds than 0 are the first tasks of its generator's."""
    spec = specs()[family]
    assert spec.suites.generate is not None
    generate = spec.suites.generate
    suites = replace(
        spec.suites,
        generate=lambda seed: islice(generate(seed), HEAD),
        expected={**spec.suites.expected, "open": HEAD},
    )
    return replace(spec, suites=suites)


def forms(spec: EnvSpec, seed: int) -> set[str]:
    tasks = load_open(specs()[spec.family] if seed == 0 else spec, seed, lambda _: None)
    return {form for task in tasks for form in task_forms(spec, task)}


def test_no_task_of_an_evaluation_and_none_of_the_other_split_is_served(clean_home: Path) -> None:
    spec = short("pddl")
    notes: list[str] = []
    table = load_table(RequestedTasks([spec], [1, 2], [1001]), None, notes.append, seed=77)
    assert table.seed == 77  # not a suite's seed
    of = {
        split: [set(task_forms(spec, each.task)) for each in table.split(split)]
        for split in ("train", "validation")
    }
    evaluated = forms(spec, 0)
    assert of["train"]
    assert of["validation"]
    validated = set().union(*of["validation"])
    assert all(not each & (evaluated | validated) for each in of["train"])
    assert all(not each & evaluated for each in of["validation"])
    assert {each.task.suite_seed for each in table.split("train")} == {1, 2}
    assert len({each.task.name for each in table.split("train")}) == len(table.split("train"))
    left_out = 3 * HEAD - len(table.split("train")) - len(table.split("validation"))
    assert f"PDDL: {len(table.split('train'))} for train" in notes[-1]
    assert left_out == 0 or "left out" in notes[-1]


def test_a_suite_made_of_evaluated_tasks_leaves_nothing(clean_home: Path) -> None:
    """Seed 0's tasks under another seed's name are recognised."""
    whole = specs()["pddl"]
    suites = replace(
        whole.suites,
        generate=lambda seed: whole.suites.load_tasks("open", None, 0)[:HEAD],
        expected={**whole.suites.expected, "open": HEAD},
    )
    spec = replace(whole, suites=suites)
    with pytest.raises(Exception, match="no task"):
        load_table(RequestedTasks([spec], [1], [1001]), None, lambda _: None)


def test_tasks_are_found_by_index_and_by_name(clean_home: Path) -> None:
    table = load_table(RequestedTasks([short("pddl")], [1], [1001]), None, lambda _: None)
    first = table.at("train", 0)
    name = first.task.name
    assert name.startswith("pddl/open-1/")
    assert table.find_task("train", name) is table.find_task("train", first.task.id) is first
    for wrong in (lambda: table.at("train", -1), lambda: table.find_task("validation", name)):
        with pytest.raises(UnknownTaskError):
            wrong()


def test_a_task_has_the_same_name_in_process_and_on_the_server(clean_home: Path) -> None:
    spec = short("pddl")
    in_process = {task.name: task for task in family_tasks(spec, "open", None, 1)}
    for served in load_table(RequestedTasks([spec], [1], []), None, lambda _: None).split("train"):
        task = in_process[served.task.name]
        assert task == served.task
        # What runs store and draw their seeds from does not depend on the suite seed.
        assert task.id.startswith("pddl/open/")
        assert Task.from_json(task.to_json()).content_hash == task.content_hash
        assert "suite_seed" not in task.to_json()


@pytest.mark.parametrize(("text", "seeds"), [("1", [1]), ("1-3, 9", [1, 2, 3, 9]), ("4,4,2", [2, 4])])
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse_seeds("--train-seeds", text) == seeds


def test_without_validation_seeds_there_is_no_such_split_and_nothing_is_made_for_it(tmp_path: Path) -> None:
    table = load_table(
        RequestedTasks([specs()["pddl"]], [0], [], allow_eval_tasks=True), tmp_path, lambda text: None
    )
    assert list(table.splits) == ["train"]
    with pytest.raises(UnknownTaskError, match="--validation-seeds 1001"):
        table.split("validation")
