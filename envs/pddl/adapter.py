"""Play PDDL problems as text, by AgentBoard's rules."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from evalharness.envs.base import InvalidTaskError, Task, TextEnv, task_of
from evalharness.envs.pddl.actions import CHECK, LISTED, LOOK, find_help_action, resolve
from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.problem import DOMAINS, goal_text
from evalharness.envs.pddl.syntax import parse_domain, parse_problem
from evalharness.envs.pddl.wording import action_text, atom_text
from evalharness.envs.pddl_text import PddlError

UNCLEAR = "The action is not valid and therefore takes no effect. Please check valid actions."
NO_EFFECT = (
    "The action is not valid and therefore takes no effect. Please remember to satisfy the restriction of "
    "actions. You can also check valid actions."
)
NEWS_ONLY = frozenset({"barman", "tyreworld"})
"""Domains in which the observation after an action lists only the facts that have become true, not the whole state."""


Engine = Callable[[str, str], GroundedProblem]


class PddlTextEnv(TextEnv):
    """A PDDL problem as text. By AgentBoard's rule, the progress rate is the largest share of the goal's atoms that
    were true after any action so far. The first state does not count.

    >>> env = PddlTextEnv()
    >>> observation, info = env.reset(options={"task": task})
    >>> env.step("Unstack b2 from b3.")[0]
    'B3 is on b1. The b3 is clear. You are holding b2. '
    """

    def __init__(self, data: Path | None = None, *, engine: Engine | None = None) -> None:
        """`engine`: function (domain text, problem text) -> simulator, by default ours; `stock` has one with
        pddlgym."""
        super().__init__(data=data)
        self._engine = engine or _ground
        self._world: GroundedProblem | None = None
        self._current: Task | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = task_of(options)
        world = world_of(task, self._engine)
        self._world, self._current = world, task
        self._kind = task.kind
        self._news_only = task.kind in NEWS_ONLY
        # Sort the sentences of all atoms once, because every observation prints the true atoms in this order.
        self._sentences = sorted((atom_text(atom).capitalize(), bit) for atom, bit in world.bit.items())
        # Sort the subgoals by their texts, because the indices in `completed` must fit `Task.subgoals`.
        self._subgoals = [
            bit for _, bit in sorted(zip(map(atom_text, world.goal_atoms), world.goal_bits, strict=True))
        ]
        self._state = world.initial
        self._progress = 0.0
        self._completed = 0
        return self._describe(self._state), self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        world = self.playing(self._world)
        help_action = find_help_action(action)
        if help_action == CHECK:
            return self._stay(LISTED + ", ".join(self._listing()), valid=True)
        if help_action == LOOK:
            return self._stay(self._describe(self._state), valid=True)
        parsed = resolve(action, world, self._state)
        if parsed is None:
            return self._stay(UNCLEAR, valid=False)
        ground = world.find(*parsed)
        if ground is None or not world.allows(self._state, ground):
            return self._stay(NO_EFFECT, valid=False)
        after = world.result(self._state, ground)
        if after == self._state:
            return self._stay(NO_EFFECT, valid=False)
        return self._move_to(after)

    @property
    def goal(self) -> str:
        return goal_text(self.playing(self._world).goal_atoms)

    @property
    def domain(self) -> str:
        """One of `gripper`, `blockworld`, `barman` and `tyreworld`."""
        self.playing(self._world)
        return self._kind

    @property
    def facts(self) -> list[tuple[str, ...]]:
        """Return every atom that is true in the current state."""
        return [atom for atom, bit in self.playing(self._world).bit.items() if self._state & bit]

    def valid_actions(self) -> list[str]:
        """Return the valid actions in AgentBoard's sentences, without trailing spaces, sorted."""
        return sorted(text.strip() for text in self._listing())

    def oracle(self) -> list[str]:
        """Return a shortest plan (see `evalharness.envs.pddl.open.oracle`)."""
        from evalharness.envs.pddl.open.oracle import plan

        solution = plan(world_of(self.playing(self._current)), self._kind)
        return [] if solution is None else [action_text(action).strip() for action in solution.actions]

    def _move_to(self, after: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        world = self.playing(self._world)
        visible = after & ~self._state if self._news_only else after
        self._state = after
        progress = max(self._progress, world.count_satisfied(after) / len(world.goal_bits))
        reward = progress - self._progress
        self._progress = progress
        first = after & world.goal & ~self._completed
        self._completed |= first
        completed = tuple(index for index, bit in enumerate(self._subgoals) if first & bit)
        solved = world.solved(after)
        observation = self._describe(visible) + (" The goal is satisfied." if solved else "")
        return observation, reward, solved, False, self._info(valid=True, completed=completed)

    def _stay(self, observation: str, *, valid: bool) -> tuple[str, float, bool, bool, dict[str, Any]]:
        solved = self.playing(self._world).solved(self._state)
        return observation, 0.0, solved, False, self._info(valid=valid)

    def _info(self, *, valid: bool, completed: tuple[int, ...] = ()) -> dict[str, Any]:
        solved = self.playing(self._world).solved(self._state)
        return self.info(progress=self._progress, success=solved, valid=valid, completed=completed)

    def _describe(self, atoms: int) -> str:
        return " ".join(sentence for sentence, bit in self._sentences if atoms & bit)

    def _listing(self) -> list[str]:
        """Return the applicable actions as sorted sentences (AgentBoard's order is random), then the help actions."""
        actions = sorted(map(action_text, self.playing(self._world).applicable(self._state)))
        return [*actions, CHECK, LOOK] if self._news_only else [*actions, CHECK]


@lru_cache(maxsize=32)
def _ground(domain_text: str, problem_text: str) -> GroundedProblem:
    """Make the simulator of a problem. It is cached, because this takes 1 to 18 ms, and a task may have many
    samples."""
    domain = parse_domain(domain_text)
    return GroundedProblem(domain, parse_problem(problem_text, domain))


def world_of(task: Task, engine: Engine = _ground) -> GroundedProblem:
    try:
        if task.family != "pddl" or task.kind not in DOMAINS:
            raise PddlError(f"{task.kind!r} is none of {', '.join(DOMAINS)}")
        return engine(task.payload["domain"], task.payload["problem"])
    except (KeyError, PddlError) as error:
        raise InvalidTaskError(f"{task.id}: {error}") from error
