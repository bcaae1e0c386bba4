"""The open suite: generated problems, each proven solvable, none like another, a published one or one of seed 0.

Suite seed 0 is rebuilt without planning from the drafts noted in `open_suite.json`; `python -m
evalharness.envs.pddl.generator` makes that file anew (some seconds).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any

from evalharness.envs.base import MAX_TURNS, SuiteExhaustedError, Task
from evalharness.envs.difficulty import difficulty, search_bits
from evalharness.envs.frozen import FROZEN_SEED, write_table
from evalharness.envs.pddl.drafts import DRAFTS, TEMPLATES, Draft
from evalharness.envs.pddl.engine import GroundAction, GroundedProblem
from evalharness.envs.pddl.form import form
from evalharness.envs.pddl.oracle import bound_of
from evalharness.envs.pddl.oracle.search import Plan, search
from evalharness.envs.pddl.oracle.symmetry import canonical_key
from evalharness.envs.pddl.problem import DOMAINS, domain_text, make_task
from evalharness.envs.pddl.syntax import Domain, Problem, parse_domain, parse_problem

FROZEN = Path(__file__).with_name("open_suite.json")
LENGTHS = {"gripper": (7, 29), "blockworld": (6, 26), "barman": (6, 27), "tyreworld": (7, 28)}
"""Shortest-plan length aimed at for the first and the last problem of a domain; those between rise evenly."""
TOLERANCE = 2
"""How far from its aim a problem's shortest plan may be."""
HARD_BITS = 46.0
"""Bits of search (`evalharness.envs.difficulty`) from which a problem counts as hard. It makes about as many problems
hard as are among the published ones (24)."""
MOST_DRAFTS = 2_000
BOUND_SLACK = 4
"""A draft whose lower bound is further below the aim is thrown away unplanned; few of them come close."""
DRAFTS_A_TEMPLATE = 100
"""The templates of a domain take turns; one that yields nothing in so many drafts leaves it to the next."""
MOST_EXPANDED = 4_000
"""States a plan may cost; a draft that takes more is thrown away, so that every oracle is quick."""
RANDOM_EPISODES = 5
MOST_RANDOM_SUCCESSES = 1
"""A problem that random actions solve in more of `RANDOM_EPISODES` episodes is thrown away."""


def open_tasks(suite_seed: int) -> list[Task]:
    """All tasks in order; for another seed than 0 that takes some seconds of planning the first time in a process."""
    if suite_seed != FROZEN_SEED:
        return list(_generated(suite_seed))
    return [
        Candidate(suite_seed, row["kind"], row["number"], row["draft"]).task(index, row["choices"])
        for index, row in enumerate(frozen()["tasks"])
    ]


@lru_cache(maxsize=4)
def _generated(suite_seed: int) -> tuple[Task, ...]:
    return tuple(generate(suite_seed))


def generate(suite_seed: int) -> Iterator[Task]:
    """The tasks of the suite of that seed, 60 in the published order of domains; some seconds of planning for all."""
    taken = set(excluded_forms()) | (set() if suite_seed == FROZEN_SEED else frozen_forms())
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
                    task = candidate.task(index, choices_of(candidate.world, plan.actions))
                    break
            if task is None:
                raise SuiteExhaustedError(
                    "PDDL", suite_seed, f"no {kind} problem {number} was found in {MOST_DRAFTS} drafts"
                )
            yield task
            index += 1


def choices_of(world: GroundedProblem, actions: Sequence[GroundAction]) -> list[int]:
    """Applicable actions before each action of a plan."""
    state, found = world.initial, []
    for action in actions:
        found.append(len(world.applicable(state)))
        state = world.result(state, action)
    return found


class Candidate:
    """One draft, walked to its start."""

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
            draft = _walked(rng, draft, self.domain)
        self._problem_text = draft.text(f"{kind}-{suite_seed}-{number}", self.domain.name)
        self.problem: Problem = parse_problem(self._problem_text, self.domain)

    def plan(self, aim: float) -> Plan | None:
        """A shortest plan of about `aim` actions, if this draft has one and is worth playing."""
        if not self.problem.goal or self.problem.initial.intersection(self.problem.goal):
            return None
        world = self.world = GroundedProblem(self.domain, self.problem)
        first = bound_of(world, self._kind)(world.initial)
        if not aim - TOLERANCE - BOUND_SLACK <= first <= min(aim + TOLERANCE, MAX_TURNS):
            return None
        plan = shortest_plan(world, self._kind)
        if plan is None or len(plan.actions) > MAX_TURNS or abs(len(plan.actions) - aim) > TOLERANCE:
            return None
        lucky = sum(_solved_by_chance(world, episode) for episode in range(RANDOM_EPISODES))
        return plan if lucky <= MOST_RANDOM_SUCCESSES else None

    def task(self, index: int, choices: Sequence[int]) -> Task:
        return make_task(
            "open",
            index,
            self._kind,
            difficulty(search_bits(choices), HARD_BITS),
            self._domain_text,
            self._problem_text,
            plan_length=len(choices),
            **self._source,
        )


def _walked(rng: Random, draft: Draft, domain: Domain) -> Draft:
    text = draft.text("start", domain.name)
    world = GroundedProblem(domain, parse_problem(text, domain))
    state = world.initial
    for _ in range(draft.walk):
        state = world.result(state, rng.choice(world.applicable(state)))
    return replace(draft, initial=world.decode(state))


def shortest_plan(world: GroundedProblem, kind: str) -> Plan | None:
    return search(world, bound_of(world, kind), canonical_key(world), most=MOST_EXPANDED)


def _solved_by_chance(world: GroundedProblem, episode: int) -> bool:
    rng = Random(episode)
    state = world.initial
    for _ in range(MAX_TURNS):
        state = world.result(state, rng.choice(world.applicable(state)))
        if world.solved(state):
            return True
    return False


@cache
def excluded_forms() -> frozenset[str]:
    """Forms of the published problems and of the prompts' examples, which no generated problem may have."""
    groups: dict[str, list[str]] = json.loads(FROZEN.with_name("excluded_forms.json").read_bytes())
    return frozenset(name for group in groups.values() for name in group)


@cache
def frozen() -> dict[str, Any]:
    """`open_suite.json`: per task of suite seed 0 the draft that was taken, and what it came to."""
    table: dict[str, Any] = json.loads(FROZEN.read_bytes())
    return table


@cache
def frozen_forms() -> frozenset[str]:
    """Forms of the problems of suite seed 0, which no problem of another suite has."""
    drafts = (Candidate(FROZEN_SEED, row["kind"], row["number"], row["draft"]) for row in frozen()["tasks"])
    return frozenset(form(draft.domain, draft.problem) for draft in drafts)


def table_row(task: Task) -> dict[str, Any]:
    domain = parse_domain(task.payload["domain"])
    world = GroundedProblem(domain, parse_problem(task.payload["problem"], domain))
    plan = shortest_plan(world, task.kind)
    if plan is None:
        raise RuntimeError(f"{task.id} has no plan")
    return {
        "kind": task.kind,
        "number": task.payload["number"],
        "draft": task.payload["draft"],
        "template": task.payload["template"],
        "difficulty": task.difficulty,
        "plan_length": len(plan.actions),
        "choices": choices_of(world, plan.actions),
        "plan_sha256": hashlib.sha256("\n".join(map(str, plan.actions)).encode()).hexdigest(),
        "content_sha256": task.content_hash,
    }


if __name__ == "__main__":
    write_table(FROZEN, {"suite_seed": FROZEN_SEED}, "tasks", map(table_row, generate(FROZEN_SEED)))
