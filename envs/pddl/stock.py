"""Play the problems with pddlgym (`--engine stock`), behind the interface of our own simulator.

pddlgym decides about actions, effects and the goal. Our simulator only encodes pddlgym's states, to print them.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evalharness.envs.pddl.adapter import PddlTextEnv
from evalharness.envs.pddl.engine import GroundAction, GroundedProblem
from evalharness.envs.pddl.syntax import parse_domain, parse_problem


def make(data: Path | None) -> PddlTextEnv:
    return PddlTextEnv(data, engine=PddlgymProblem.of)


class PddlgymProblem(GroundedProblem):
    @classmethod
    @lru_cache(maxsize=1)
    def of(cls, domain_text: str, problem_text: str) -> PddlgymProblem:
        parsed = parse_domain(domain_text)
        problem = cls(parsed, parse_problem(problem_text, parsed))
        problem.load(domain_text, problem_text)
        return problem

    def load(self, domain_text: str, problem_text: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pddlgym.core import PDDLEnv
        with TemporaryDirectory(prefix="evalharness-pddlgym-") as name:
            domain, problems = Path(name, "domain.pddl"), Path(name, "problems")
            problems.mkdir()
            domain.write_text(domain_text)
            (problems / "problem.pddl").write_text(problem_text)
            self._env: Any = PDDLEnv(
                str(domain), str(problems), operators_as_actions=True, dynamic_action_space=True
            )
        first, _ = self._env.reset()
        self._states: dict[int, Any] = {}
        self._objects = {entity.name: entity for entity in first.objects}
        self._predicates = {predicate.name: predicate for predicate in self._env.action_space.predicates}
        self.initial = self._store(first)
        self.applicable = lru_cache(maxsize=4)(self._applicable)  # type: ignore[method-assign]

    def _store(self, state: Any) -> int:
        """Store a state of pddlgym, and return the integer that stands for this state in our simulator."""
        bits = self.encode(
            (literal.predicate.name, *(entity.name for entity in literal.variables))
            for literal in state.literals
        )
        self._states[bits] = state
        return bits

    def _applicable(self, state: int) -> list[GroundAction]:
        own = self._states[state]
        self._env.set_state(own)
        literals = self._env.action_space.all_ground_literals(own)
        names = sorted(
            (literal.predicate.name, tuple(entity.name for entity in literal.variables))
            for literal in literals
        )
        return [self._index[name] for name in names]

    def has_applicable(self, state: int, name: str) -> bool:
        return any(action.name == name for action in self.applicable(state))

    def allows(self, state: int, action: GroundAction) -> bool:
        return action in self.applicable(state)

    def result(self, state: int, action: GroundAction) -> int:
        self._env.set_state(self._states[state])
        literal = self._predicates[action.name](*(self._objects[name] for name in action.arguments))
        after, *_ = self._env.step(literal)
        return self._store(after)

    def solved(self, state: int) -> bool:
        return bool(self._env._is_goal_reached(self._states[state]))
