"""`--engine stock`: TextWorld and pddlgym play what our engines play."""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from command_line import evalharness

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.records.store import read_episodes, read_manifest

pytestmark = [
    pytest.mark.slow(60),
    pytest.mark.skipif(
        sys.version_info >= (3, 12) or not (find_spec("pddlgym") and find_spec("fast_downward")),
        reason="needs the stock engines: pip install 'evalharness[stock]', Python 3.11",
    ),
]


@pytest.mark.parametrize("kind", ["heat", "gripper", "blockworld", "barman", "tyreworld"])
def test_both_engines_answer_alike(kind: str) -> None:
    """Along the oracle's plan with help and random valid actions before each of its steps."""
    spec = specs()["alfworld" if kind == "heat" else "pddl"]
    task = next(task for task in spec.suites.load_tasks("open", None, 0) if task.kind == kind)
    ours, stock = spec.make(None), spec.on_stock_engine().make(None)
    assert type(ours) is type(stock)
    assert ours.reset(options={"task": task}) == stock.reset(options={"task": task})
    rng = random.Random(kind)
    for planned in [*ours.oracle()[:3], "check valid actions", "look", "no such action"]:
        for action in (planned, rng.choice(ours.valid_actions())):
            assert ours.step(action) == stock.step(action), action
            assert ours.valid_actions() == stock.valid_actions()


def test_a_run_on_the_stock_engines_scores_as_ours_and_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    options = ("--model", "oracle", "--suite", "open", "--tasks", "alfworld:3,pddl:3,babyai:3")
    for name, engine in (("ours", ()), ("stock", ("--engine", "stock"))):
        done = evalharness(environment, "run", *options, *engine, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
    episodes = [
        {
            e.task_id: [(t.action, t.observation, t.progress) for t in e.turns]
            for e in read_episodes(tmp_path / name)
        }
        for name in ("ours", "stock")
    ]
    assert episodes[0] == episodes[1]
    ours, stock = (read_manifest(tmp_path / name) for name in ("ours", "stock"))
    assert (ours.identity.config.engine, stock.identity.config.engine) == (None, "stock")
    assert ours.sessions[0].packages is not None
    assert stock.sessions[0].packages is not None
    added = stock.sessions[0].packages.keys() - ours.sessions[0].packages.keys()
    assert added == {"textworld", "fast-downward-textworld", "pddlgym"}
    checked = evalharness(environment, "verify", tmp_path / "stock")
    assert checked.returncode == 0, "our engines replay what the stock ones played"


def test_a_missing_engine_is_named_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    spec = specs()["pddl"]
    assert spec.stock is not None
    with pytest.raises(UserError, match=r"PDDL needs nothing-of-this-name.*evalharness\[stock\]"):
        replace(spec, stock=replace(spec.stock, packages=("nothing-of-this-name",))).on_stock_engine()
