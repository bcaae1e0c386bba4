"""verl-agent's side of ALFWorld, played over the server: the recorded games of its own code, and that code itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import throwaway
from command_line import surroundings
from env_server import EnvServer, serving

from evalharness.envs import specs
from evalharness.envs.alfworld.open.households import build_game, household_of
from evalharness.envs.alfworld.tasks import KINDS, game_path
from evalharness.envs.base import Task
from evalharness.protocol.prompt import Adaptation, load_prompt
from evalharness.protocols.importer import import_texts
from tests.conform.protocol_transcripts import RecordedGame, read_recording
from tests.conform.protocols import ProtocolResult, follow
from tests.rl.clients.test_trainers import ROOT, carry_out, lines_of

CHECKOUT = "EVALHARNESS_TEST_VERL_AGENT"
"""Variable with the folder of a checkout of verl-agent."""
GAMES = Path(__file__).with_name("verl_agent_games.py")
TURNS = ("--max-turns", 50)
EVALUATED = ("--suite", "unwrapped", "--allow-eval-tasks")
"""The published games as they are: served because a person says so, and to this test alone."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has what our client needs, and nothing else of ours."""
    return throwaway.make(tmp_path_factory.mktemp("verl") / "venv", ["websockets", "psutil"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EnvServer]:
    with serving(surroundings(tmp_path_factory.mktemp("env")), "alfworld", *TURNS) as found:
        yield found


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory, published_data: Path) -> Iterator[EnvServer]:
    around = surroundings(tmp_path_factory.mktemp("published"))
    with serving(around, "alfworld", *TURNS, *EVALUATED, "--data", published_data) as found:
        yield found


def test_the_lines_of_the_page(server: EnvServer, python: Path, tmp_path: Path) -> None:
    said = carry_out(python, lines_of("verl-agent", URL=server.url), tmp_path)
    assert said[:3] == ["8 episodes of 2 tasks", "-= A household =-", ""]
    assert said[3].startswith("You are in the middle of a room. ")
    assert said[5].startswith("Your task is to: ")
    assert said[6:] == ["[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0] False"]


_RECORDED = """
import json
import sys
from evalharness.rl.clients.verl import build_alfworld_envs

url, said = sys.argv[1], json.load(open(sys.argv[2]))
envs = build_alfworld_envs(url, seed=0, env_num=134, group_n=1)
observations, images, infos = envs.reset()
names = [info["extra.gamefile"].rpartition("/")[2] for info in infos]
games = {name: [[observations[i], envs.get_admissible_commands[i]]] for i, name in enumerate(names)}
for step in range(max(map(len, said.values()))):
    actions = [(said.get(name, []) + [""] * 50)[step] for name in names]
    answers, images, rewards, dones, infos = envs.step(actions)
    for i, name in enumerate(names):
        if step < len(said.get(name, [])):
            games[name].append([answers[i], infos[i]["admissible_commands"], rewards[i], dones[i], infos[i]["won"]])
json.dump({name: games[name] for name in said}, open(sys.argv[3], "w"))
print(len(set(names)), len(said))
envs.close()
"""


@pytest.mark.data
def test_recorded_games_have_the_same_prompts_and_rewards(
    evaluated: EnvServer, python: Path, data_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """27 of the 40 recorded games are at hand. Prompts are those of our agent, which is equal to theirs."""
    folder = data_source / "protocols"
    games = {
        f"{game.replay.index:03d}": game
        for game in read_recording("verl-agent", folder).games
        if game.replay is not None
    }
    said = {name: [step.action or "" for step in game.steps] for name, game in games.items()}
    (tmp_path / "said.json").write_text(json.dumps(said))
    script = f"import sys\nsys.argv[1:] = {[evaluated.url, 'said.json', 'played.json']!r}\n{_RECORDED}"
    assert carry_out(python, script, tmp_path) == ["134 27"]
    played: dict[str, list[Any]] = json.loads((tmp_path / "played.json").read_text())

    monkeypatch.setenv("EVALHARNESS_DATA", str(tmp_path / "data"))
    import_texts("verl-agent", folder / "sources" / "verl-agent")
    prompt, result = (
        load_prompt(specs()["alfworld"], adaptation=Adaptation(texts="verl-agent")),
        ProtocolResult(),
    )
    won = 0
    for name, game in games.items():
        follow(_as_played(game, played[name]), "verl-agent", prompt.for_kind(game.kind), result)
        assert game.replay is not None
        rows = [step.fields for step in game.replay.steps]
        assert [row["obs"] for row in rows] == [answer[0] for answer in played[name][1:]]
        for number, (row, answer) in enumerate(zip(rows, played[name][1:], strict=True), 1):
            _, admissible, *outcome = answer
            assert outcome == [row["reward"], row["done"], row["won"]], (name, number)
            assert admissible == ([] if row["done"] else row["admissible"]), (name, number)
        won += rows[-1]["won"]
    assert result.mismatches == []
    assert result.compared["messages"] == 1005
    assert 0 < won < 27


def _as_played(game: RecordedGame, played: list[Any]) -> RecordedGame:
    """With what our client answered in place of what was recorded."""
    (observation, admissible), *rest = played
    steps = [
        replace(step, observation=answer[0], valid_actions=tuple(answer[1]))
        for step, answer in zip(game.steps, rest, strict=True)
    ]
    return replace(game, observation=observation, valid_actions=tuple(admissible), steps=tuple(steps))


_LOST = """
import sys
import psutil
from evalharness.rl.clients.verl import build_alfworld_envs

url, server = sys.argv[1], psutil.Process(int(sys.argv[2]))
lost, whole = (build_alfworld_envs(url, seed=1, env_num=4, group_n=2) for _ in range(2))
before = [lost.reset(), whole.reset()]
print(before[0] == before[1])
pairs = [tuple(lost.get_admissible_commands[at : at + 2]) for at in range(0, 8, 2)]
print(all(one == other for one, other in pairs))
for step in range(6):
    actions = [commands[step % len(commands)] for commands in lost.get_admissible_commands]
    wanted = whole.step(actions)
    if step == 3:
        whole.close()  # its episodes would be lost, too
        children = server.children(recursive=True)
        workers = [each for each in children if "evalharness.play.workers.child" in each.cmdline()]
        print(len(workers) > 0)
        for worker in workers:
            worker.kill()
        print(lost.step(actions) == wanted)
        break
    print(lost.step(actions) == wanted)
"""


def test_episodes_of_a_worker_that_is_killed_are_played_again(python: Path, tmp_path: Path) -> None:
    """In the words that were drawn for them."""
    with serving(surroundings(tmp_path), "alfworld", *TURNS, "--perturb", "random") as server:
        arguments = [server.url, str(server.pid)]
        said = carry_out(python, f"import sys\nsys.argv[1:] = {arguments!r}\n{_LOST}", tmp_path)
    assert said == ["True"] * 7


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("suite", ["open", "unwrapped"])
def test_its_own_manager_builds_the_same_prompts_and_rewards_for_40_games(
    suite: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Step by step beside its own ALFWorld on TextWorld: 80 episodes, groups of two, half of the replies damaged."""
    checkout = os.environ.get(CHECKOUT)
    if checkout is None:
        pytest.skip(f"no verl-agent: name a checkout of xlan156/verl-agent 8ca3a46 in {CHECKOUT}")
    if sys.version_info >= (3, 13):
        pytest.skip("TextWorld 1.7 plays no PDDL game on Python 3.13")
    data = request.getfixturevalue("published_data") if suite == "unwrapped" else None
    found: EnvServer = request.getfixturevalue("server" if suite == "open" else "evaluated")
    _write_games(tmp_path / "games", suite, data)
    over = throwaway.overlay(tmp_path / "packages", "websockets", "omegaconf")
    done = subprocess.run(
        [sys.executable, GAMES, checkout, found.url, tmp_path / "games", "3", "40"],
        env={**os.environ, "PYTHONPATH": f"{over}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["differences"] == []
    counts = said["counts"]
    assert (counts["games"], counts["tasks"], counts["episodes"]) == (40, 40, 80)
    assert counts["won"] + counts["cut"] == 80
    assert min(counts["won"], counts["cut"]) > 0
    assert counts["prompts"] > 900
    assert sorted(said["kinds"]) == sorted(KINDS)


def _write_games(folder: Path, suite: str, data: Path | None) -> None:
    """Each task as ALFWorld keeps its games, and a plan that reaches its goal."""
    spec, types, plans = specs()["alfworld"], {short: name for name, short in KINDS.items()}, {}
    env = spec.make(data)
    for task in spec.suites.load_tasks(suite, data, 1):
        name = replace(task, suite_seed=1 if suite == "open" else None).name
        place = folder / name.replace("/", "_") / "json_2.1.1" / "train" / "game"
        place.mkdir(parents=True)
        (place / "game.tw-pddl").write_text(json.dumps({**_game(task, data), "solvable": True}))
        (place / "traj_data.json").write_text(json.dumps({"task_type": types[task.kind]}))
        env.reset(options={"task": task})
        plans[name] = env.oracle()
    (folder / "plans.json").write_text(json.dumps(plans))


def _game(task: Task, data: Path | None) -> dict[str, Any]:
    payload = task.payload
    if "household" not in payload:
        published: dict[str, Any] = json.loads(game_path(data, str(payload["game"])).read_text())
        return published
    return dict(build_game(household_of(task)))
