"""Our subgoals: reachable, in place of nothing that happens by itself, and read as the published rule reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError, MissingDataError, Task
from evalharness.envs.jericho.adapter import LabelProgress
from evalharness.envs.jericho.observation import letters
from evalharness.envs.jericho.tasks import FOLDER, GAMES, GOALS, OFFICIAL, game_labels

SPEC = specs()["jericho"]


def _tasks(data: Path) -> list[Task]:
    return SPEC.suites.load_tasks("agentboard", data, 0)


@pytest.mark.data
@pytest.mark.parametrize("game", GAMES)
def test_the_plan_completes_every_subgoal_within_30_turns(published_data: Path, game: str) -> None:
    """One subgoal a turn, none twice, the last of the list at the last turn."""
    task = _tasks(published_data)[GAMES.index(game)]
    environment = SPEC.make(published_data)
    environment.reset(options={"task": task})
    plan = environment.oracle()
    assert 1 <= len(plan) <= 30
    completed: list[int] = []
    for action in plan[:-1]:
        _, _, terminated, _, info = environment.step(action)
        assert not terminated, action
        completed += info["subgoals_completed"]
    _, _, terminated, _, info = environment.step(plan[-1])
    completed += info["subgoals_completed"]
    assert (terminated, info["success"], info["progress"]) == (True, True, 1.0)
    assert sorted(completed) == list(range(len(task.subgoals)))
    assert completed[-1] == len(task.subgoals) - 1


@pytest.mark.data
def test_the_games_recorded_solutions_complete_our_subgoals(published_data: Path) -> None:
    """An independent check: nobody made those with our labels in mind.

    Not so in afflicted, whose solution goes to Nikolai's office only after he has left it, far beyond 30 turns.
    """
    missed = []
    for task in _tasks(published_data):
        environment = SPEC.make(published_data)
        environment.reset(options={"task": task})
        for action in environment.reference_plans()["walkthrough"]:
            _, _, terminated, _, info = environment.step(action)
            if terminated:
                break
        assert info["solved"], task.kind
        if not info["success"]:
            missed.append(task.kind)
    assert missed == ["afflicted"]


@pytest.mark.data
def test_each_game_has_the_known_number_of_subgoals(published_data: Path) -> None:
    rows = [json.loads(line) for line in (published_data / FOLDER / GOALS).read_text().splitlines()]
    tasks = _tasks(published_data)
    assert len(tasks) == len(rows) == SPEC.suites.expected["agentboard"]
    for row, task in zip(rows, tasks, strict=True):
        assert (task.kind, task.goal, len(task.subgoals)) == (row["game"], row["goal"], row["n_subgoals"])
        assert task.labels == ("official" if row["subgoals"] else "ours")


@pytest.mark.data
def test_nothing_is_completed_before_the_agent_acts(published_data: Path) -> None:
    """Neither by the opening text of the data, nor by looking at the game's first room or possessions."""
    for task in _tasks(published_data):
        environment = SPEC.make(published_data)
        opening, info = environment.reset(options={"task": task})
        assert LabelProgress(task.subgoals).update(opening) == ()
        assert (info["progress"], info["success"], info["subgoals_completed"]) == (0.0, False, ())
        for action in ("look", "inventory", "examine me"):
            assert environment.step(action)[4]["progress"] == 0.0, (task.kind, action)


def test_phrases_are_short_and_do_not_contain_one_another() -> None:
    for game, labels in game_labels().items():
        patterns = [letters(subgoal) for subgoal in labels.subgoals]
        for pattern in patterns:
            assert 2 <= len(pattern.split()) <= 12, (game, pattern)
            assert sum(pattern in other for other in patterns) == 1, (game, pattern)


@pytest.mark.data
def test_huntdark_has_its_own_goal_and_opening(published_data: Path) -> None:
    """The published run had "Not written yet." for both, by a misspelt key."""
    task = _tasks(published_data)[GAMES.index("huntdark")]
    assert "wumpus" in task.goal
    assert "crossbow" in task.payload["opening"]


@pytest.mark.data
def test_official_labels_in_the_data_take_the_place_of_ours(published_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / GOALS).symlink_to(published_data / FOLDER / GOALS)
    official = [
        {"task": "jericho", "id": i, "goal": "g", "subgoals": [f"{game} done"], "difficulty": "easy"}
        for i, game in enumerate(GAMES)
    ]
    (folder / OFFICIAL).write_text("\n".join(json.dumps(row) for row in official))
    tasks = _tasks(tmp_path)
    assert {task.labels for task in tasks} == {"official"}
    assert [task.subgoals for task in tasks] == [(f"{game} done",) for game in GAMES]
    assert all("Not written" not in task.goal and task.goal != "g" for task in tasks)
    assert all(task.difficulty == "easy" for task in tasks)


@pytest.mark.data
def test_a_different_story_file_is_refused(published_data: Path, tmp_path: Path) -> None:
    task = _tasks(published_data)[GAMES.index("zork1")]
    path = tmp_path / task.payload["story"]
    path.parent.mkdir(parents=True)
    path.write_bytes((published_data / task.payload["story"]).read_bytes() + b"\0")
    with pytest.raises(InvalidTaskError, match="evalharness data verify"):
        SPEC.make(tmp_path).reset(options={"task": task})


def test_missing_data_names_the_command_that_mends_it(tmp_path: Path) -> None:
    for data in (None, tmp_path):
        with pytest.raises(MissingDataError, match="evalharness data import"):
            SPEC.suites.load_tasks("agentboard", data, 0)


def test_progress_is_the_published_rule() -> None:
    """Any order, one a turn and the first that is left, case-sensitive, blind to punctuation."""
    progress = LabelProgress(("The door opens", "It's dark", "door"))
    assert progress.update("the DOOR opens") == ()
    assert progress.update("Its dark. The door, opens!") == (0,)
    assert progress.update("Its dark: The door opens") == (1,)
    assert (round(progress.rate, 3), progress.complete) == (0.667, False)
    assert progress.update("a door") == (2,)
    assert (progress.rate, progress.complete) == (1.0, True)
    assert progress.update("a door") == ()
    assert (LabelProgress(()).rate, LabelProgress(()).complete) == (0.0, False)
