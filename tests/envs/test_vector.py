"""Several worlds in one process behind `gymnasium.make_vec`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from evalharness.envs import specs
from evalharness.envs.base import InvalidTaskError

PDDL = specs()["pddl"]


def test_a_vector_of_worlds_says_what_each_would_say_alone(clean_home: Path) -> None:
    tasks = PDDL.suites.load_tasks("open", None, 0)[:3]
    envs = gymnasium.make_vec(f"evalharness.envs:{PDDL.gym_id}", num_envs=3)
    observations, infos = envs.reset(options={"tasks": tasks})
    plans = [env.oracle() for env in envs.envs]  # type: ignore[attr-defined]
    alone = [PDDL.make(None) for _ in tasks]
    assert list(observations) == [
        env.reset(options={"task": t})[0] for env, t in zip(alone, tasks, strict=True)
    ]
    ended, total = np.zeros(3, dtype=bool), np.zeros(3)
    for turn in range(max(map(len, plans))):
        actions = [plan[turn] if turn < len(plan) else "look" for plan in plans]
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for i, env in enumerate(alone):
            if not ended[i]:
                observation, reward, over, _, info = env.step(actions[i])
                assert (observations[i], rewards[i], terminated[i]) == (observation, reward, over)
                assert infos["progress"][i] == info["progress"]
            else:
                assert (rewards[i], terminated[i]) == (0.0, True)
        assert [infos["progress"][i] for i in np.flatnonzero(terminated)] == [1.0] * terminated.sum()
        ended, total = terminated, total + rewards
        assert not truncated.any()
    assert ended.all()
    assert envs.step(["look"] * 3)[4]["progress"].tolist() == [1.0] * 3
    assert total == pytest.approx(np.ones(3))

    observations, infos = envs.reset(options={"task": tasks[0], "reset_mask": np.array([False, True, False])})
    assert observations[1] == alone[0].reset(options={"task": tasks[0]})[0]
    assert envs.step(["look"] * 3)[2].tolist() == [True, False, True]
    envs.close()


def test_the_lines_of_the_page(clean_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[2] / "docs" / "trainers" / "index.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    assert code.count("SEED = 1") == 1
    exec(code.replace("SEED = 1", "SEED = 0"), {})
    assert capsys.readouterr().out == "pddl/open-0/000 [0. 0. 0. 0.] [0. 0. 0. 0.]\n"


@pytest.mark.parametrize(("mode", "how"), [("sync", {}), ("async", {"shared_memory": False})])
def test_gymnasiums_own_vectors_take_the_worlds(
    clean_home: Path, mode: gymnasium.VectorizeMode, how: dict[str, Any]
) -> None:
    task = PDDL.suites.load_tasks("open", None, 0)[0]
    envs = gymnasium.make_vec(
        f"evalharness.envs:{PDDL.gym_id}", num_envs=2, vectorization_mode=mode, vector_kwargs=how
    )
    observations, _ = envs.reset(options={"task": task})
    assert list(observations) == [PDDL.make(None).reset(options={"task": task})[0]] * 2
    envs.close()


def test_as_many_tasks_as_worlds(clean_home: Path) -> None:
    envs = gymnasium.make_vec(f"evalharness.envs:{PDDL.gym_id}", num_envs=2)
    with pytest.raises(InvalidTaskError, match="3 tasks for 2 worlds"):
        envs.reset(options={"tasks": PDDL.suites.load_tasks("open", None, 0)[:3]})
    with pytest.raises(InvalidTaskError, match="reset"):
        envs.reset()
    tasks = {"tasks": PDDL.suites.load_tasks("open", None, 0)[:2]}
    for mask in ([True], [True] * 3, [0, 1], "11"):
        with pytest.raises(ValueError, match="reset_mask: give 2 booleans"):
            envs.reset(options={**tasks, "reset_mask": mask})
    envs.close()


def test_no_world_is_stepped_where_there_are_not_as_many_actions(clean_home: Path) -> None:
    envs = gymnasium.make_vec(f"evalharness.envs:{PDDL.gym_id}", num_envs=4)
    envs.reset(options={"task": PDDL.suites.load_tasks("open", None, 0)[0]})
    action = envs.envs[0].valid_actions()[-1]
    for wrong in ([action] * 3, "look"):
        with pytest.raises(ValueError, match="give 4 actions"):
            envs.step(wrong)
    _, _, _, _, infos = envs.step([action] * 4)
    assert list(infos["valid"]) == [True] * 4
    envs.close()
