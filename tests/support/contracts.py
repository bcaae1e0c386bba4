"""What shared tests and benchmarks have to know of a family, kept in its own folder: `tests/envs/<family>/contract.py`
(of HotpotQA `tests/paper/hotpotqa/contract.py`).

Each family of this repository has one, named `CONTRACT`; a family without one fails where it is looked for.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from hypothesis.strategies import SearchStrategy

from evalharness.envs.base import Task, TextEnv

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
FAMILIES: tuple[str, ...] = tuple(sorted(_PROJECT["project"]["entry-points"]["evalharness.environments"]))
"""The environments of this repository, sorted; others may be installed beside them."""


@dataclass(frozen=True)
class Contract:
    open_tasks: int
    """Tasks of the open suite."""
    shape: Callable[[Task], object]
    """An open task up to renaming: equal for two tasks that are the same but for names. Hashable."""
    goal_template: Callable[[Task], str]
    """The goal of an open task without the names in it."""
    none_is_done_in_two_turns: Callable[[Sequence[Task]], None] | None
    """Asserts that no open task can be solved in two turns, by trying all pairs of actions that could. None where a
    task can be solved by a guess."""
    things: Callable[[Task, TextEnv, str], int]
    """(task of any suite, environment, its first observation) -> how many objects its world has."""
    names: SearchStrategy[str]
    """Names as they stand in the slots of actions."""
    refusal: str | None
    """What the environment says to an action that it does not know; None where that depends on the action."""
    combined: tuple[str, ...] = ()
    """Perturbations joined with `+` that are tested beside the single ones."""
    lists_other_words: bool = False
    """The environment lists some actions in other words than its templates, and takes both."""
    valid_actions_follow_the_text: bool = False
    """The valid actions are what the last observation suggests, so a refusal changes them too."""
    stride: int = 1
    """Of so many tasks of a suite one is played under every perturbation: more than 1 where steps or plans are slow."""
    slow: bool = False
    """`none_is_done_in_two_turns` takes more than about ten seconds."""


def contract(family: str) -> Contract:
    folder = "tests.paper" if family == "hotpotqa" else "tests.envs"
    found: Contract = import_module(f"{folder}.{family}.contract").CONTRACT
    return found
