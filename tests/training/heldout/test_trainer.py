"""What is read of a training: its step, its rewards, its sums over restarts; and the proof against its tasks."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import Task, teaching_of
from evalharness.results.training_log import TRAINING_LOG, Window, read_training_log
from evalharness.suites.selection import family_tasks
from evalharness.training.datasets.overlap import task_forms
from evalharness.training.heldout.curve import prove_disjoint
from evalharness.training.heldout.trainer import EnvServer, keep_rewards, step_of


@pytest.mark.parametrize(
    ("name", "text", "step"),
    [
        ("metrics.jsonl", '{"step":7,"data":{"critic/score/mean":0.2}}\n{"step":8,"data":{}}\n', 8),
        ("metrics.jsonl", '{"step":7}\n{"st', 7),
        ("metrics.jsonl", 'starting\n{"step":7}\n{"epoch":1}\n{"step":"x"}\n[1]\n', 7),
        ("metrics.jsonl", '{"step":50.0}\n{"step":50.5}\n', 50),
        ("metrics.jsonl", '{"data":{"step":9}}\n', None),
        ("metrics.jsonl", "", None),
        ("trainer_state.json", '{"global_step": 40, "log_history": []}', 40),
    ],
)
def test_the_last_step_of_a_log_is_found(name: str, text: str, step: int | None, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert step_of(tmp_path / name) == step


def test_a_log_that_is_not_there_yet_has_no_step_and_a_broken_state_is_refused(tmp_path: Path) -> None:
    assert step_of(tmp_path / "metrics.jsonl") is None
    (tmp_path / "trainer_state.json").write_text('{"global_step": "many"}')
    with pytest.raises(UserError, match="no step can be read"):
        step_of(tmp_path / "trainer_state.json")


def test_what_speaks_no_http_is_no_env_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(9999)
                connection.sendall(b"SSH-2.0-x\r\n")

        thread = Thread(target=answer)
        thread.start()
        with pytest.raises(UserError, match="no `evalharness env serve` answers there"):
            EnvServer(f"http://127.0.0.1:{other.getsockname()[1]}").look(None)
        thread.join()


def test_a_long_log_is_read_from_its_end(tmp_path: Path) -> None:
    line = json.dumps({"step": 1, "data": {"text": "x" * 10_000}}) + "\n"
    (tmp_path / "metrics.jsonl").write_text(line * 300 + '{"step": 9}\n')
    assert step_of(tmp_path / "metrics.jsonl") == 9


def look(started: float, episodes: int, reward: float, **more: object) -> str:
    sums = {"episodes": episodes, "turns": episodes, "reward": reward, "success": reward, "progress": reward}
    return json.dumps({"time": 1.0, "started": started, "counts": {"pddl": sums}, **more}) + "\n"


def test_rewards_are_those_between_two_looks_and_a_new_server_begins_at_0(tmp_path: Path) -> None:
    lines = [look(1.0, 0, 0), look(1.0, 10, 2), look(1.0, 10, 2), look(1.0, 20, 8), look(2.0, 5, 5)]
    (tmp_path / TRAINING_LOG).write_text("".join(lines))
    log = read_training_log(tmp_path)
    assert log.windows == (Window(10, 10, 0.2), Window(20, 10, 0.6), Window(25, 5, 1.0))
    assert log.episodes == 25
    assert log.reward(None, 20) == pytest.approx(0.4)
    assert log.reward(20, 25) == 1.0
    assert log.reward(25, 30) is None


def test_looks_at_one_step_are_one_window(tmp_path: Path) -> None:
    lines = [look(1.0, 4, 0, step=3), look(1.0, 8, 4, step=3), look(1.0, 9, 5, step=4)]
    (tmp_path / TRAINING_LOG).write_text("".join(lines) + '{"run": "step-3", "began": 3, "en')
    log = read_training_log(tmp_path)
    assert log.windows == (Window(3, 8, 0.5), Window(4, 1, 1.0))
    assert log.evaluated == ()


def test_a_trainer_state_s_rewards_are_kept_once(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint-2"
    checkpoint.mkdir()
    history = [{"step": 1, "reward": 0.25}, {"step": 1, "loss": 1.0}, {"step": 2, "reward": 0.5}]
    (checkpoint / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    for _ in range(2):
        keep_rewards(tmp_path, [checkpoint])
    assert read_training_log(tmp_path).windows == (Window(1, 1, 0.25), Window(2, 1, 0.5))
    assert len((tmp_path / TRAINING_LOG).read_text().splitlines()) == 2
    keep_rewards(tmp_path, [tmp_path / "checkpoint-3"])
    keep_rewards(tmp_path, [])


def described(task: Task, seed: int = 7) -> dict[str, object]:
    forms = task_forms(teaching_of(specs()[task.family]), task)
    return {
        "id": f"{task.family}/open-{seed}/{task.index:03d}", "family": task.family, "suite_seed": seed,
        "task_hash": task.content_hash, "task_forms": forms,
    }  # fmt: skip


def test_the_same_task_is_refused_by_content_and_up_to_renaming() -> None:
    one, two, other = family_tasks(specs()["jericho"], "open", None, 0)[:3]
    proof = prove_disjoint("http://env", [described(other)], [one, two], specs())
    assert proof.compared == {"jericho": {"evaluated": 2, "trained": 1}}
    assert proof.train_seeds == [7]
    by_content = {**described(two), "task_forms": []}
    renamed = {**described(replace(two, index=99)), "task_hash": "another"}
    for twin in (by_content, renamed):
        with pytest.raises(UserError, match=rf"not held out: 1 of the 2 .*{two.id} is jericho/open-7"):
            prove_disjoint("http://env", [described(other), twin], [one, two], specs())


def test_a_server_that_does_not_say_what_its_tasks_are_proves_nothing() -> None:
    one, two = family_tasks(specs()["jericho"], "open", None, 0)[:2]
    old = {name: value for name, value in described(two).items() if name != "task_forms"}
    with pytest.raises(UserError, match="does not say what its tasks are"):
        prove_disjoint("http://env", [old], [one], specs())


@pytest.mark.parametrize(
    "answers",
    [
        {"/list_environments": []},
        {"/list_environments": ["a", "b"]},
        {"/list_environments": {}},
        {"/list_environments": 5},
        {"/list_environments": [7]},
        {"/list_environments": ["a b/c"], "/a%20b%2Fc/tasks": []},
        {"/list_environments": ["a"], "/a/tasks": {"tasks": None}},
    ],
)
def test_another_server_in_its_place_is_said_in_one_line(
    answers: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = EnvServer("http://host:8000")
    monkeypatch.setattr(server, "_ask", lambda path, body=None: answers[path])
    with pytest.raises(UserError, match="its list of tasks is none of `evalharness env serve`"):
        server.train_tasks()
