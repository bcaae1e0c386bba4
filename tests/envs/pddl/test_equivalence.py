"""Our engine is pddlgym's equal: same states, same valid actions, same goals, along random walks."""

from __future__ import annotations

import os
import random
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from evalharness.envs.pddl.engine import GroundAction, GroundedProblem
from evalharness.envs.pddl.problem import DOMAINS, domain_text
from evalharness.envs.pddl.syntax import Atom, parse_domain, parse_problem

if sys.version_info >= (3, 12):
    pytest.skip("pddlgym pins pillow<10, which ends at Python 3.11", allow_module_level=True)
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pddlgym.core
except ImportError:
    if os.environ.get("CI"):
        raise
    pytest.skip("needs pddlgym: pip install 'evalharness[stock]'", allow_module_level=True)

STEPS = 60

PROBLEMS = {
    "gripper": """
        (define (problem three-rooms) (:domain gripper-strips)
          (:objects hall lab attic red green blue left right)
          (:init (room hall) (room lab) (room attic) (ball red) (ball green) (ball blue)
                 (gripper left) (gripper right) (free left) (free right) (at-robby hall)
                 (at red hall) (at green lab) (at blue attic))
          (:goal (and (at red lab) (at green attic))))""",
    "blockworld": """
        (define (problem two-towers) (:domain blocksworld-4ops)
          (:objects a b c d e)
          (:init (arm-empty) (on-table a) (on b a) (on c b) (clear c) (on-table d) (on e d) (clear e))
          (:goal (and (on a b) (on e c))))""",
    "barman": """
        (define (problem two-drinks) (:domain barman)
          (:objects shaker1 - shaker left right - hand shot1 shot2 shot3 - shot
                    gin lime - ingredient gimlet limo - cocktail tap1 tap2 - dispenser l0 l1 l2 - level)
          (:init (ontable shaker1) (ontable shot1) (ontable shot2) (ontable shot3)
                 (clean shaker1) (clean shot1) (clean shot2) (clean shot3)
                 (empty shaker1) (empty shot1) (empty shot2) (empty shot3)
                 (handempty left) (handempty right) (dispenses tap1 gin) (dispenses tap2 lime)
                 (shaker-empty-level shaker1 l0) (shaker-level shaker1 l0) (next l0 l1) (next l1 l2)
                 (cocktail-part1 gimlet gin) (cocktail-part2 gimlet lime)
                 (cocktail-part1 limo lime) (cocktail-part2 limo gin))
          (:goal (and (contains shot1 gimlet) (contains shot2 lime))))""",
    "tyreworld": """
        (define (problem two-wheels) (:domain tyreworld)
          (:objects wrench jack pump - tool hub1 hub2 - hub nut1 nut2 - nut boot - container
                    old1 new1 old2 - wheel)
          (:init (in jack boot) (in pump boot) (in wrench boot) (in new1 boot) (unlocked boot) (closed boot)
                 (intact new1) (not-inflated new1) (on old1 hub1) (on old2 hub2)
                 (on-ground hub1) (on-ground hub2) (tight nut1 hub1) (tight nut2 hub2)
                 (fastened hub1) (fastened hub2))
          (:goal (and (on new1 hub1) (inflated new1) (in old1 boot))))""",
}


class Pddlgym:
    """The stock path, in our terms."""

    def __init__(self, domain: str, problem: str, folder: Path) -> None:
        (folder / "problems").mkdir(parents=True)
        (folder / "domain.pddl").write_text(domain)
        (folder / "problems" / "problem.pddl").write_text(problem)
        self.env: Any = pddlgym.core.PDDLEnv(
            str(folder / "domain.pddl"),
            str(folder / "problems"),
            operators_as_actions=True,
            dynamic_action_space=True,
        )
        self.state, _ = self.env.reset()
        self.done = False
        self._objects = {entity.name: entity for entity in self.state.objects}
        self._predicates = {predicate.name: predicate for predicate in self.env.action_space.predicates}

    def atoms(self) -> frozenset[Atom]:
        return frozenset(_atom(literal) for literal in self.state.literals)

    def valid(self) -> set[Atom]:
        return {_atom(literal) for literal in self.env.action_space.all_ground_literals(self.state)}

    def step(self, name: str, arguments: tuple[str, ...]) -> None:
        literal = self._predicates[name](*[self._objects[argument] for argument in arguments])
        self.state, _, self.done, _, _ = self.env.step(literal)


def _atom(literal: Any) -> Atom:
    return (literal.predicate.name, *(variable.name for variable in literal.variables))


def _same_walk(domain: str, problem: str, folder: Path, seed: int) -> None:
    theirs = Pddlgym(domain, problem, folder)
    parsed = parse_domain(domain)
    world = GroundedProblem(parsed, parse_problem(problem, parsed))
    state = world.initial
    rng = random.Random(seed)
    for _ in range(STEPS):
        assert world.decode(state) == theirs.atoms()
        ours = world.applicable(state)
        assert {(action.name, *action.arguments) for action in ours} == theirs.valid()
        assert all(world.has_applicable(state, action.name) for action in ours)
        name, arguments = _any_action(world, ours, rng)
        action = world.find(name, arguments)
        if action is not None and state & action.needs == action.needs:
            state = world.result(state, action)
        theirs.step(name, arguments)
        assert world.solved(state) == theirs.done, (name, arguments)


def _any_action(
    world: GroundedProblem, valid: list[GroundAction], rng: random.Random
) -> tuple[str, tuple[str, ...]]:
    """Two times in three a valid action, else any objects of the right number, which mostly do not fit."""
    if valid and rng.random() < 2 / 3:
        chosen = rng.choice(valid)
        return chosen.name, chosen.arguments
    name = rng.choice(sorted(world.operator_names))
    return name, tuple(rng.choices(sorted(world.objects), k=world.arity[name]))


@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind in DOMAINS for seed in range(3)])
def test_our_domains_play_as_in_pddlgym(kind: str, seed: int, tmp_path: Path) -> None:
    _same_walk(domain_text(kind), PROBLEMS[kind], tmp_path, seed)


@pytest.mark.parametrize("kind", ["gripper", "blocks_operator_actions"])
def test_the_problems_that_pddlgym_ships_play_as_in_pddlgym(kind: str, tmp_path: Path) -> None:
    folder = Path(pddlgym.core.__file__).parent / "pddl"
    domain = (folder / f"{kind}.pddl").read_text()
    for index, file in enumerate(sorted((folder / kind).glob("*.pddl"))[:3]):
        _same_walk(domain, file.read_text(), tmp_path / str(index), index)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("kind", DOMAINS)
def test_published_problems_play_as_in_pddlgym(kind: str, published_data: Path, tmp_path: Path) -> None:
    folder = published_data / "agentboard" / "pddl"
    domain = (folder / f"{kind}.pddl").read_text()
    for index, file in enumerate(sorted((folder / kind).glob("*.pddl"))):
        _same_walk(domain, file.read_text(), tmp_path / str(index), index)
