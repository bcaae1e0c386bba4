"""Generate the open suite: solvable problems that differ from published and other generated ones not only in names.

`open_suite.jsonl` stores which random drafts were accepted for suite seed 0, so that its tasks need no planning.
`python -m evalharness.envs.pddl.open.generator` writes this file again in some seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from evalharness.envs.base import MAX_TURNS, Difficulty, SuiteExhaustedError, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED, read_table, write_table
from evalharness.envs.pddl.engine import GroundAction, GroundedProblem
from evalharness.envs.pddl.open.drafts import DRAFTS, TEMPLATES, Draft
from evalharness.envs.pddl.open.form import form
from evalharness.envs.pddl.open.oracle import bound_of
from evalharness.envs.pddl.open.oracle.search import ActionPlan, search
from evalharness.envs.pddl.open.oracle.symmetry import canonical_key
from evalharness.envs.pddl.problem import DOMAINS, domain_text, make_task
from evalharness.envs.pddl.syntax import Domain, Problem, parse_domain, parse_problem

FROZEN = Path(__file__).with_name("open_suite.jsonl")
"""File with a row for each task of suite seed 0: number of its draft, difficulty, and length of its shortest plan."""
LENGTHS = {"gripper": (7, 29), "blockworld": (6, 26), "barman": (6, 27), "tyreworld": (7, 28)}
"""Domain -> intended length of the shortest plan of (first problem, last problem); it grows linearly between them."""
TOLERANCE = 2
"""Allowed difference between the length of a problem's shortest plan and the intended length."""
HARD_BITS = 46.0
"""A problem is hard if `search_bits` of its plan is at least this value; about as many problems are hard as in the
published suite (24)."""
MOST_DRAFTS = 2_000
BOUND_SLACK = 4
"""Without planning, reject a draft if its lower bound plus `TOLERANCE` + `BOUND_SLACK` is below the intended length."""
DRAFTS_A_TEMPLATE = 100
"""Number of drafts with one kind of goal. If none of them is accepted, the domain's next kind of goal is tried."""
MOST_EXPANDED = 4_000
"""Maximum number of expanded states in the search for a draft's plan. More would make the oracle of a task slow."""
RANDOM_EPISODES = 5
MOST_RANDOM_SUCCESSES = 1
"""A problem is rejected if random actions solve it in more than this number of `RANDOM_EPISODES` episodes."""


def read_frozen_suite() -> list[Task]:
    """Return all tasks of suite seed 0 in order, without planning."""
    return [
        Candidate(FROZEN_SEED, row["kind"], row["number"], row["draft"]).task(
            index, row["difficulty"], row["plan_length"]
        )
        for index, row in enumerate(read_table(FROZEN))
    ]


def generate(suite_seed: int) -> Iterator[Task]:
    """Yield the 60 tasks of a suite seed, domain by domain. This takes some seconds, because each task needs a plan."""
    taken = set(list_excluded_forms()) | (set() if suite_seed == FROZEN_SEED else list_frozen_forms())
    index = 0
    for kind, count in DOMAINS.items():
        low, high = LENGTHS[kind]
        for number in range(count):
            aim = low + (high - low) * number / (count - 1)
            task = None
            for attempt in range(MOST_DRAFTS):
                candidate = Candidate(suite_seed, kind, number, attempt)
                plan = candidate.plan(aim)
                if plan is not None and (name := form(candidate.domain, candidate.problem)) not in taken:
                    taken.add(name)
                    bits = search_bits(count_choices(candidate.world, plan.actions))
                    task = candidate.task(index, difficulty(bits, HARD_BITS), len(plan.actions))
                    break
            if task is None:
                raise SuiteExhaustedError(
                    "PDDL", suite_seed, f"no {kind} problem {number} was found in {MOST_DRAFTS} drafts"
                )
            yield task
            index += 1


def count_choices(world: GroundedProblem, actions: Sequence[GroundAction]) -> list[int]:
    """Return how many actions are applicable before each action of a plan."""
    state, choices = world.initial, []
    for action in actions:
        choices.append(len(world.applicable(state)))
        state = world.result(state, action)
    return choices


class Candidate:
    """A random problem that may become task `number` of its domain; `attempt` is the number of the draft."""

    def __init__(self, suite_seed: int, kind: str, number: int, attempt: int) -> None:
        rng = Random(f"pddl open {suite_seed} {kind} {number} {attempt}")
        templates = TEMPLATES[kind]
        template = templates[(number + attempt // DRAFTS_A_TEMPLATE) % len(templates)]
        draft = DRAFTS[kind](rng, number / (DOMAINS[kind] - 1), template)
        self._source = {"number": number, "draft": attempt, "template": draft.template}
        self._kind = kind
        self._domain_text = domain_text(kind)
        self.domain: Domain = parse_domain(self._domain_text)
        if draft.walk:
            draft = _walk(rng, draft, self.domain)
        self._problem_text = draft.text(f"{kind}-{suite_seed}-{number}", self.domain.name)
        self.problem: Problem = parse_problem(self._problem_text, self.domain)

    def plan(self, aim: float) -> ActionPlan | None:
        """Return a shortest plan; None if its length is not about `aim`, or if random actions solve the problem."""
        if not self.problem.goal or self.problem.initial.intersection(self.problem.goal):
            return None
        world = self.world = GroundedProblem(self.domain, self.problem)
        first = bound_of(world, self._kind)(world.initial)
        if not aim - TOLERANCE - BOUND_SLACK <= first <= min(aim + TOLERANCE, MAX_TURNS):
            return None
        plan = shortest_plan(world, self._kind)
        if plan is None or len(plan.actions) > MAX_TURNS or abs(len(plan.actions) - aim) > TOLERANCE:
            return None
        successes = sum(_is_solved_by_chance(world, episode) for episode in range(RANDOM_EPISODES))
        return plan if successes <= MOST_RANDOM_SUCCESSES else None

    def task(self, index: int, difficulty: Difficulty, plan_length: int) -> Task:
        return make_task(
            "open",
            index,
            self._kind,
            difficulty,
            self._domain_text,
            self._problem_text,
            plan_length=plan_length,
            **self._source,
        )


def _walk(rng: Random, draft: Draft, domain: Domain) -> Draft:
    text = draft.text("start", domain.name)
    world = GroundedProblem(domain, parse_problem(text, domain))
    state = world.initial
    for _ in range(draft.walk):
        state = world.result(state, rng.choice(world.applicable(state)))
    return replace(draft, initial=world.decode(state))


def shortest_plan(world: GroundedProblem, kind: str) -> ActionPlan | None:
    return search(world, bound_of(world, kind), canonical_key(world), most=MOST_EXPANDED)


def _is_solved_by_chance(world: GroundedProblem, episode: int) -> bool:
    rng = Random(episode)
    state = world.initial
    for _ in range(MAX_TURNS):
        state = world.result(state, rng.choice(world.applicable(state)))
        if world.solved(state):
            return True
    return False


@cache
def list_excluded_forms() -> frozenset[str]:
    """Return the forms (see `form`) of AgentBoard's problems and of the prompts' examples, which no task may have."""
    groups: dict[str, list[str]] = json.loads(FROZEN.with_name("excluded_forms.json").read_bytes())
    return frozenset(name for group in groups.values() for name in group)


@cache
def list_frozen_forms() -> frozenset[str]:
    """Return the forms of the problems of suite seed 0. No problem of another suite seed may have them."""
    drafts = (Candidate(FROZEN_SEED, row["kind"], row["number"], row["draft"]) for row in read_table(FROZEN))
    return frozenset(form(draft.domain, draft.problem) for draft in drafts)


def table_row(task: Task) -> dict[str, Any]:
    keys = ("number", "draft", "plan_length")
    return {"kind": task.kind, "difficulty": task.difficulty, **{key: task.payload[key] for key in keys}}


if __name__ == "__main__":
    write_table(FROZEN, map(table_row, generate(FROZEN_SEED)))
