"""Our engine and TextWorld's, side by side over random walks: same text, same commands, same verdict."""

import json
import random
import sys
from collections import defaultdict
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.adapter import ALFWorldEnv
from evalharness.envs.alfworld.open.households import build_game, household_of
from evalharness.envs.alfworld.stock import TextWorldGame
from evalharness.envs.alfworld.tasks import read_game
from evalharness.envs.alfworld.world import World
from evalharness.envs.base import InvalidTaskError

reference = pytest.mark.skipif(
    sys.version_info >= (3, 13) or find_spec("textworld") is None,
    reason="needs TextWorld, whose grammar needs Python < 3.13",
)


def walk_both(game: Mapping[str, Any], seed: str, steps: int) -> None:
    ours, theirs, rng = World(game), TextWorldGame(game), random.Random(seed)
    assert ours.reset() == theirs.reset()
    for _ in range(steps):
        commands = sorted(ours.commands())
        assert commands == theirs.commands()
        assert ours.won is theirs.won
        # A verb first: there are far more places to go to than things to open, take or heat.
        by_verb = defaultdict(list)
        for command in commands:
            by_verb[command.split()[0]].append(command)
        command = rng.choice(by_verb[rng.choice(sorted(by_verb))])
        if rng.random() < 0.1:
            command = rng.choice([f" {command} ", command.upper(), f"{command} 1", ""])
        assert ours.step(command) == theirs.step(command), command


@reference
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["put", "clean", "heat", "cool", "examine", "puttwo"])
def test_generated_households_play_the_same_on_textworld(kind: str) -> None:
    task = next(task for task in SPEC.suites.load_tasks("open", None, 3) if task.kind == kind)
    walk_both(build_game(household_of(task)), task.id, 40)


@reference
@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("kind", ["put", "clean", "heat", "cool", "examine", "puttwo"])
def test_published_games_play_the_same_on_textworld(kind: str, published_data: Path) -> None:
    tasks = [task for task in SPEC.suites.load_tasks("agentboard", published_data, 0) if task.kind == kind]
    task = random.Random(kind).choice(tasks)
    walk_both(json.loads(read_game(published_data, task.payload["game"])), task.id, 40)


@pytest.mark.slow
@reference
def test_the_adapter_answers_alike_on_either_engine_up_to_the_goal() -> None:
    task = next(task for task in SPEC.suites.load_tasks("open", None, 3) if task.kind == "heat")
    ours, theirs = ALFWorldEnv(), ALFWorldEnv(engine=TextWorldGame)
    assert ours.reset(options={"task": task}) == theirs.reset(options={"task": task})
    plan = ours.oracle()
    assert plan == theirs.oracle()
    for action in ["check valid actions", "inventory", *plan]:
        assert ours.step(action) == theirs.step(action)
        assert ours.valid_actions() == theirs.valid_actions()


@pytest.mark.parametrize("missing", ["pddl_domain", "grammar", "pddl_problem"])
def test_what_is_not_a_game_is_named_as_such(missing: str) -> None:
    game = dict(build_game(household_of(SPEC.suites.load_tasks("open", None, 3)[0])))
    del game[missing]
    with pytest.raises(InvalidTaskError, match=missing):
        World(game)
