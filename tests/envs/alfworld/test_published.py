"""The published suite: its task table, labels, oracle, and refusal of data that is absent or altered."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.open.households import subgoals
from evalharness.envs.alfworld.tasks import KINDS, game_path
from evalharness.envs.base import InvalidTaskError, MissingDataError


def test_without_data_the_message_names_the_command_that_brings_it(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(MissingDataError, match="evalharness data import"):
            SPEC.suites.load_tasks("agentboard", data, 0)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "put-A-None-B-1/trial_1/..", ""])
def test_a_name_that_leaves_the_data_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidTaskError):
        game_path(tmp_path, name)


@pytest.mark.data
def test_the_table_holds_134_tasks_of_six_kinds_in_label_order(published_data: Path) -> None:
    tasks = SPEC.suites.load_tasks("agentboard", published_data, 0)
    assert len(tasks) == SPEC.suites.expected["agentboard"] == 134
    assert [task.index for task in tasks] == list(range(134))
    assert {task.kind for task in tasks} == set(KINDS.values())
    assert [task.content_hash for task in SPEC.suites.load_tasks("agentboard", published_data, 1)] == [
        task.content_hash for task in tasks
    ]
    assert not any(str(published_data) in json.dumps(task.to_json()) for task in tasks)


@pytest.mark.data
def test_the_published_labels_follow_from_what_each_game_asks_for(published_data: Path) -> None:
    """Subgoals and difficulty rebuilt from `traj_data.json` equal the label file's, for every task."""
    for task in SPEC.suites.load_tasks("agentboard", published_data, 0):
        folder = game_path(published_data, task.payload["game"]).parent
        asked = json.loads((folder / "traj_data.json").read_text())
        parameters = asked["pddl_params"]
        target = parameters["parent_target"] or parameters["toggle_target"]
        rebuilt = subgoals(KINDS[asked["task_type"]], parameters["object_target"].lower(), target.lower())
        assert rebuilt == task.subgoals
        assert task.difficulty == ("hard" if len(rebuilt) > 2 else "easy")


@pytest.mark.slow
@pytest.mark.data
def test_the_oracle_solves_every_task_within_thirty_turns_and_meets_every_label(published_data: Path) -> None:
    env = SPEC.make(published_data)
    for task in SPEC.suites.load_tasks("agentboard", published_data, 0):
        env.reset(options={"task": task})
        plan = env.oracle()
        assert 1 <= len(plan) <= 30, task.id
        met: set[int] = set()
        for number, action in enumerate(plan, 1):
            _, _, done, _, info = env.step(action)
            met.update(info["subgoals_completed"])
            assert info["valid"], (task.id, action)
            assert done is (number == len(plan)), (task.id, action)
        assert info["success"], task.id
        assert info["solved"], task.id
        assert info["progress"] == 1.0
        assert met == set(range(len(task.subgoals))), task.id


@pytest.mark.data
def test_a_game_file_that_differs_from_the_task_table_is_refused(
    published_data: Path, tmp_path: Path
) -> None:
    task = SPEC.suites.load_tasks("agentboard", published_data, 0)[0]
    original = game_path(published_data, task.payload["game"])
    copy = game_path(tmp_path, task.payload["game"])
    copy.parent.mkdir(parents=True)
    shutil.copy(original, copy)
    env = SPEC.make(tmp_path)
    env.reset(options={"task": task})
    copy.write_text(re.sub("Your task is to: ", "Your task is to: not ", copy.read_text()))
    with pytest.raises(InvalidTaskError, match="evalharness data verify"):
        env.reset(options={"task": task})
    with pytest.raises(InvalidTaskError):
        env.reset(options={"task": replace(task, family="pddl")})


@pytest.mark.data
def test_playing_leaves_the_data_as_it_was(published_data: Path) -> None:
    task = SPEC.suites.load_tasks("agentboard", published_data, 0)[0]
    folder = game_path(published_data, task.payload["game"]).parent
    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()}
    env = SPEC.make(published_data)
    env.reset(options={"task": task})
    for action in env.oracle():
        env.step(action)
    env.close()
    assert {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()} == before
