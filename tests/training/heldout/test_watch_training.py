"""`watch-training` over a real environment server and a chat server whose policy changes as the training goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from chat_server import ChatServer
from command_line import evalharness, read_records, start, surroundings
from env_server import EnvServer, connect, serving

from evalharness.base.errors import UserError
from evalharness.records.store import read_manifest
from evalharness.results.training_log import TRAINING_LOG, read_training_log
from evalharness.runs.study import run_folders
from evalharness.training.heldout.curve import HeldOutCurve
from evalharness.training.heldout.trainer import EnvServer as Asked

UNTRAINED, TRAINED = "Thought: t\nAction: turn up", "Thought: t\nAction: turn right"
"""The second one faces every direction within four turns."""
TASKS = 4


@pytest.fixture(scope="module")
def surrounded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return surroundings(tmp_path_factory.mktemp("around"))


@pytest.fixture(scope="module")
def env(surrounded: dict[str, str]) -> Iterator[EnvServer]:
    """An episode of the training is one turn."""
    served = ("pddl", "--train-seeds", 0, "--allow-eval-tasks", "--max-turns", 1, "--sessions", 2)
    with serving(surrounded, *served) as found:
        yield found


async def train(env: EnvServer, episodes: int) -> None:
    async with ClientSession() as client:
        talk = await connect(client, env.url)
        for _ in range(episodes):
            await talk.reset()
            assert (await talk.step("Thought: t\nAction: check valid actions"))["done"]
        await talk.socket.close()


def words(server: ChatServer, env: EnvServer, folder: Path, *more: object) -> list[object]:
    return [
        "watch-training", "--server", server.url, "--env", env.url, "--suite", "open", "--tasks", "compass:0-3",
        "--max-turns", 4, "--concurrency", 1, "--wait", 0, "-o", folder, *more,
    ]  # fmt: skip


async def watch(surrounded: dict[str, str], *arguments: object) -> str:
    """What it says on standard error."""
    process = await start(surrounded, *arguments)
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return errors.decode()


def rates(folder: Path) -> dict[str, float]:
    """Evaluation -> success, of what `show` writes as JSON."""
    shown = json.loads(folder.with_suffix(".json").read_text())
    return {point["name"]: point["rates"]["all"]["success"] for point in shown["points"]}


async def test_every_so_many_training_episodes_the_policy_of_that_time_is_one_more_run(
    surrounded: dict[str, str], env: EnvServer, tmp_path: Path
) -> None:
    study, begun = tmp_path / "study", Asked(env.url).look(None).counts
    before = sum(sums.episodes for sums in begun.values())
    async with ChatServer(answer=lambda request: UNTRAINED).running() as server:
        go = words(server, env, study, "--every", 1000)
        await watch(surrounded, *go)
        asked = len(server.requests)
        await train(env, 3)
        await watch(surrounded, *go)
        assert len(server.requests) == asked, "it was not time for another one"
        server.answer = lambda request: TRAINED
        await watch(surrounded, *words(server, env, study, "--every", 2))
    first, last = f"episode-{before}", f"episode-{before + 3}"
    assert [folder.name for folder in run_folders([study])] == [first, last]
    manifests = [read_manifest(study / name) for name in (first, last)]
    assert [m.identity.model["training"] for m in manifests] == [{"episode": before}, {"episode": before + 3}]
    assert manifests[0].digest != manifests[1].digest
    assert manifests[0].user_labels == {"episode": str(before)}
    proof = manifests[1].disjoint
    assert proof is not None
    assert (proof.env, proof.train_seeds, proof.train_tasks) == (env.url, [0], 60)
    assert proof.compared == {"compass": {"evaluated": TASKS, "trained": 0}}
    done = evalharness(surrounded, "show", study, "--json", study.with_suffix(".json"))
    assert done.returncode == 0, done.stderr
    assert "training reward" in done.stdout
    assert rates(study) == {first: 0.0, last: 1.0}
    rows = (study / "training.csv").read_text().splitlines()
    assert [row for row in rows if row.startswith("toy,training") or ",reward," in row]
    assert (study / "training.svg").stat().st_size > 5000
    log = read_training_log(study)
    assert log.families == ("pddl",)
    assert log.windows[-1].episodes == 3


async def test_a_killed_evaluation_goes_on_only_while_its_policy_is_served(
    surrounded: dict[str, str], env: EnvServer, tmp_path: Path
) -> None:
    study, log = tmp_path / "study", tmp_path / "metrics.jsonl"

    def at(step: int) -> None:
        with log.open("a") as file:
            file.write(json.dumps({"step": step, "data": {"critic/score/mean": 0.5}}) + "\n")

    async with ChatServer(answer=lambda request: UNTRAINED).running() as server:
        go = words(server, env, study, "--log", log, "--every", 50)

        async def killed(after: int) -> None:
            process = await start(surrounded, *go)
            await server.after(after)
            process.kill()
            await process.wait()

        at(50)
        await killed(6)
        kept = read_records(study / "step-50" / "episodes.jsonl")
        assert 0 < len(kept) < TASKS
        await watch(surrounded, *go)
        whole = read_records(study / "step-50" / "episodes.jsonl")
        assert whole[: len(kept)] == kept
        assert sorted(episode["task_id"] for episode in whole) == [
            f"compass/open/{i:03d}" for i in range(TASKS)
        ]
        at(100)
        await killed(6)
        at(151)
        server.answer = lambda request: TRAINED
        said = await watch(surrounded, *go)
    assert "step-100 was not finished, and its policy is gone" in said
    assert [each.run for each in read_training_log(study).evaluated] == ["step-50", "step-151"]
    done = evalharness(surrounded, "show", study, "--json", study.with_suffix(".json"))
    assert done.returncode == 0, done.stderr
    assert rates(study) == {"step-50": 0.0, "step-151": 1.0}
    with pytest.raises(UserError, match="goes by step: give the command with --log"):
        HeldOutCurve(study, Asked(env.url), None, 50)


async def test_a_policy_that_moved_during_its_evaluation_is_said_to_be_several(
    surrounded: dict[str, str], env: EnvServer, tmp_path: Path
) -> None:
    study, log = tmp_path / "study", tmp_path / "trainer_state.json"
    log.write_text('{"global_step": 10}')

    def answer(request: Any) -> str:
        log.write_text('{"global_step": 12}')
        return UNTRAINED

    async with ChatServer(answer=answer).running() as server:
        await watch(surrounded, *words(server, env, study, "--log", log))
    (only,) = read_training_log(study).evaluated
    assert (only.run, only.began, only.ended) == ("step-10", 10, 12)
    said = evalharness(surrounded, "show", study).stdout
    assert "10-12" in said
    assert "toy: 1 checkpoint, " in said
    assert "of several policies: step-10 until step 12" in " ".join(said.split())
    assert "not held out as a family" not in said
    sums = dict.fromkeys(("episodes", "turns", "reward", "success", "progress"), 1)
    with (study / TRAINING_LOG).open("a") as file:
        file.write(json.dumps({"time": 1.0, "started": 1.0, "step": 13, "counts": {"compass": sums}}) + "\n")
    said = " ".join(evalharness(surrounded, "show", study).stdout.split())
    assert "not held out as a family, other tasks of it are trained on: Compass" in said


def test_an_evaluation_of_served_tasks_is_refused_and_nothing_is_written(
    surrounded: dict[str, str], env: EnvServer, tmp_path: Path
) -> None:
    done = evalharness(
        surrounded, "watch-training", "--server", "http://127.0.0.1:9/v1", "--model-name", "x", "--env", env.url,
        "--suite", "open", "--tasks", "pddl:0-1", "-o", tmp_path / "study",
    )  # fmt: skip
    assert done.returncode == 2
    assert "not held out: 2 of the 60 training tasks are evaluated" in done.stderr
    assert not (tmp_path / "study").exists()


def test_no_environment_server_is_said_in_one_line(surrounded: dict[str, str], tmp_path: Path) -> None:
    done = evalharness(
        surrounded, "watch-training", "--server", "http://127.0.0.1:9/v1", "--model-name", "x", "--env",
        "http://127.0.0.1:9", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "study",
    )  # fmt: skip
    assert done.returncode == 2
    assert "no `evalharness env serve` answers there" in " ".join(done.stderr.split())


def test_the_watch_ends_when_the_training_has_not_moved_for_so_long(env: EnvServer, tmp_path: Path) -> None:
    curve, now, moves = (
        HeldOutCurve(tmp_path / "study", Asked(env.url), None, 1000),
        [0.0],
        [2, 1, 0, 0, 0, 0],
    )

    def pause(seconds: float) -> None:
        now[0] += seconds
        if moves:
            asyncio.run(train(env, moves.pop(0)))

    position = curve.look()
    curve.complete(position)
    assert curve.wait(1, pause=pause, clock=lambda: now[0]) is False
    assert now[0] == 2 * 20 + 60
    curve.every = 1
    curve.complete(curve.look())
    moves.append(1)
    assert curve.wait(1, pause=pause, clock=lambda: now[0]) is True
    curve.close()
    assert len((tmp_path / "study" / TRAINING_LOG).read_bytes().splitlines()) == 6


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match=r"is not empty"):
        HeldOutCurve(tmp_path, Asked("http://127.0.0.1:9"), None, 50)
