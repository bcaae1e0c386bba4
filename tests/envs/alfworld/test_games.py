"""ALFWorld's own data folder: two suites known by hash in both releases, and train games that are never scored."""

import json
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import ClientSession
from env_server import connect, serving
from made_once import made_once

from evalharness.cli import main
from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.games import read_evaluated_games
from evalharness.envs.base import InvalidTaskError, MissingDataError, Task
from evalharness.protocol.perturb import make_surface
from evalharness.records.store import read_episodes
from evalharness.results.exports.conversation import opening
from evalharness.suites.excluded import PUBLISHED, load_excluded

pytestmark = pytest.mark.data
SEEN = {"put": 35, "examine": 13, "clean": 27, "heat": 16, "cool": 25, "puttwo": 24}


def _unpacked(archive: Path, folder: Path) -> None:
    if not archive.is_file():
        pytest.skip(f"no {archive}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


@pytest.fixture(scope="module")
def older(data_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with valid_seen of the older release (`put X in/on Y`)."""

    def make(folder: Path) -> None:
        _unpacked(data_source / "alfworld" / "alfworld_valid_seen.tar.gz", folder / "download")
        assert main(["data", "import", "--alfworld", str(folder / "download"), "--data", str(folder)]) == 0

    return made_once(tmp_path_factory, "alfworld-older", make)


@pytest.fixture(scope="module")
def later(data_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with both splits and 60 train games of the later release (`move X to Y`)."""

    def make(folder: Path) -> None:
        _unpacked(data_source / "alfworld" / "alfworld_later_release.tar.gz", folder / "download")
        assert main(["data", "import", "--alfworld", str(folder / "download"), "--data", str(folder)]) == 0

    return made_once(tmp_path_factory, "alfworld-later", make)


def _oracle_verbs(tasks: list[Task], data: Path) -> set[str]:
    """Solve every task by its oracle, and return the verbs of all commands."""
    env, verbs = SPEC.make(data), set[str]()
    for task in tasks:
        env.reset(options={"task": task})
        plan = env.oracle()
        assert [env.step(action)[2] for action in plan][-1:] == [True], task.id
        verbs |= {action.split()[0] for action in plan}
    return verbs


def test_the_seen_suite_holds_the_140_games_of_six_kinds_in_both_texts(older: Path, later: Path) -> None:
    put = SPEC.suites.load_tasks("alfworld-seen", older, 0)
    move = SPEC.suites.load_tasks("alfworld-seen", later, 0)
    assert Counter(task.kind for task in put) == SEEN
    assert [(task.id, task.goal, task.kind) for task in put] == [(t.id, t.goal, t.kind) for t in move]
    assert not {task.content_hash for task in put} & {task.content_hash for task in move}
    assert len(SPEC.suites.load_tasks("alfworld-unseen", later, 0)) == 134


@pytest.mark.slow
def test_the_oracle_solves_every_game_in_the_words_of_its_grammar(older: Path, later: Path) -> None:
    verbs = _oracle_verbs(SPEC.suites.load_tasks("alfworld-seen", older, 0), older)
    assert "put" in verbs
    assert "move" not in verbs
    for suite in ("alfworld-seen", "alfworld-unseen", "alfworld-train"):
        verbs = _oracle_verbs(SPEC.suites.load_tasks(suite, later, 0), later)
        assert "move" in verbs
        assert "put" not in verbs


def test_the_prompt_says_put_or_move_as_the_game_does(older: Path, later: Path, tmp_path: Path) -> None:
    shown = {}
    for data in (older, later):
        folder = tmp_path / ("older" if data == older else "later")
        command = [
            "run",
            "--model",
            "oracle",
            "--suite",
            "alfworld-seen",
            "--limit",
            "1",
            "--data",
            str(data),
        ]
        assert main([*command, "--tasks", "alfworld:kind=clean", "-o", str(folder)]) == 0
        [episode] = read_episodes(folder)
        messages, whole = opening(episode)
        assert whole
        shown[episode.words] = messages[1]["content"]
        assert main(["verify", str(folder), "--data", str(data)]) == 0
    put, move = (
        ("put fork 1 in/on drawer 1", "You put the fork 1 in/on"),
        ("move fork 1 to drawer 1", "You move the fork 1 to"),
    )
    for words, here, elsewhere in (("", put, move), ("move", move, put)):
        assert all(text in shown[words] for text in here)
        assert not any(text in shown[words] for text in elsewhere)
    assert "check valid actions" not in shown["move"]


@pytest.mark.parametrize("name", [None, *SPEC.actions.wording.perturbations])
def test_a_perturbation_of_the_later_games_is_understood_by_them(name: str | None) -> None:
    surface = make_surface(SPEC, name).for_game("move")
    assert surface.find_confused_action() is None
    command = "move mug 1 to desk 1"
    assert surface.to_world(surface.from_world(command)) == command


def test_a_table_of_this_family_shows_its_six_kinds(
    older: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "--model", "oracle", "--protocol", "verl-agent", "--draw", "12", "--data", str(older)]
    assert main([*command, "-o", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert all(f"{kind} 100.0 (" in shown for kind in SEEN)
    assert "at most 50 turns" in shown


def test_missing_and_changed_games_are_counted_and_named(older: Path, tmp_path: Path) -> None:
    shutil.copytree(older / "alfworld", tmp_path / "alfworld")
    first, second, *_ = read_evaluated_games()["valid_seen"]
    games = tmp_path / "alfworld" / "json_2.1.1" / "valid_seen"
    game = json.loads((games / first / "game.tw-pddl").read_text())
    (games / first / "game.tw-pddl").write_text(json.dumps({**game, "walkthrough": ["look"]}))
    assert len(SPEC.suites.load_tasks("alfworld-seen", tmp_path, 0)) == 140
    (games / first / "game.tw-pddl").write_text(json.dumps({**game, "grammar": game["grammar"] + " "}))
    with pytest.raises(InvalidTaskError, match=f"1 of 140 .*{first}"):
        SPEC.suites.load_tasks("alfworld-seen", tmp_path, 0)
    (games / second / "game.tw-pddl").unlink()
    with pytest.raises(MissingDataError, match=f"1 of 140 .*{second}.*--alfworld DIR"):
        SPEC.suites.load_tasks("alfworld-seen", tmp_path, 0)


def test_a_changed_game_is_left_out_at_import_and_named(
    older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = next(iter(read_evaluated_games()["valid_seen"]))
    path = tmp_path / "download" / "json_2.1.1" / "valid_seen" / first / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "download"))
    assert main(["data", "import", "--data", str(tmp_path), "--alfworld"]) == 0
    shown = capsys.readouterr().out
    assert f"changed and left out 1: {first}" in shown
    assert "0 of 140 there; missing 140" in shown


def test_train_games_are_refused_for_scoring(later: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "--model", "oracle", "--suite", "alfworld-train", "--data", str(later)]
    assert main(command) == 2
    assert "env serve" in capsys.readouterr().err


@pytest.mark.slow
async def test_train_games_are_served_by_kind_and_in_the_order_of_a_seed(
    later: Path, environment: dict[str, str]
) -> None:
    """A trainer plays them over the server in the words of their release, and is rewarded for a solved game."""
    games = {task.id: task for task in SPEC.suites.load_tasks("alfworld-train", later, 0)}
    env, orders = SPEC.make(later), []
    for seed in (1, 1, 2):
        options = ("alfworld", "--suite", "alfworld-train", "--data", later, "--seed", seed)
        with serving(environment, *options) as server:
            async with ClientSession() as client:
                talk, order = await connect(client, server.url), []
                for _ in range(8):
                    await talk.reset()
                    order.append((await talk.state())["task_id"])
                orders.append(order)
                opening = await talk.reset(kind="heat")
                game = games[(await talk.state())["task_id"]]
                assert game.kind == "heat"
                assert "- move {object} to {receptacle}" in opening["observation"]["text"]
                env.reset(options={"task": game})
                for command in env.oracle():
                    answer = await talk.step(f"Thought: t\nAction: {command}")
                assert (answer["done"], answer["reward"]) == (True, 1.0)
                refused = await talk.ask("reset", kind="dance")
                assert "heat" in refused["data"]["message"]
    assert orders[0] == orders[1] != orders[2]
    assert len(set(orders[0])) == len(orders[0])


def test_evaluated_games_are_never_training_data_in_the_words_of_any_release(
    older: Path, later: Path
) -> None:
    barred = load_excluded(SPEC, None)  # no published data on this machine
    for data in (older, later):
        for task in SPEC.suites.load_tasks("alfworld-seen", data, 0):
            assert barred.check(task) == PUBLISHED
    assert all(barred.check(task) is None for task in SPEC.suites.load_tasks("alfworld-train", later, 0))


def test_recorded_games_of_the_later_words_are_played_to_the_letter(later: Path, data_source: Path) -> None:
    """verl-agent's recordings in the words of the later release, against that release's own games."""
    recording = data_source / "protocols" / "verl-agent-alfworld_move.jsonl"
    if not recording.is_file():
        pytest.skip(f"no {recording}")
    tasks = {task.payload["game"]: task for task in SPEC.suites.load_tasks("alfworld-unseen", later, 0)}
    env, compared = SPEC.make(later), 0
    for line in recording.read_text().splitlines():
        row = json.loads(line)
        opening, _ = env.reset(options={"task": tasks[row["task"]["game"]]})
        assert opening == row["init_obs"]
        assert env.valid_actions() == sorted(row["init_admissible"])
        for step in row["steps"]:
            observation, _, won, _, _ = env.step(step["projected_action"])
            assert (observation, won) == (step["obs"], step["won"]), row["task"]
            assert env.valid_actions() == sorted(step["admissible"])
            compared += 1
    assert compared == 207
