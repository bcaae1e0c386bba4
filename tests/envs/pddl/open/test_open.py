"""The open suite: frozen, solvable, different from one another and from the published one, not won by luck."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from math import log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_plans import oracle_plan
from pddl_suite import other_suite
from pddl_worlds import EXAMPLES

from evalharness.envs.base import MAX_TURNS, Task
from evalharness.envs.pddl import SPEC
from evalharness.envs.pddl.open.form import form
from evalharness.envs.pddl.open.generator import HARD_BITS, generate, list_excluded_forms
from evalharness.envs.pddl.problem import DOMAINS, domain_text
from evalharness.envs.pddl.syntax import parse_domain, parse_problem

HELP = {SPEC.actions.templates["check"], SPEC.actions.templates["look"]}


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return SPEC.suites.load_tasks("open", None, 0)


def form_of(task: Task) -> str:
    domain = parse_domain(task.payload["domain"])
    return form(domain, parse_problem(task.payload["problem"], domain))


def check_suite(tasks: list[Task]) -> None:
    """What every suite seed promises."""
    assert [task.kind for task in tasks] == [kind for kind, count in DOMAINS.items() for _ in range(count)]
    assert [task.index for task in tasks] == list(range(SPEC.suites.expected["open"]))
    forms = [form_of(task) for task in tasks]
    assert len(set(forms)) == len(forms)
    assert not set(forms) & list_excluded_forms()
    templates = defaultdict(set)
    env = SPEC.make(None)
    for task in tasks:
        templates[task.kind].add(task.payload["template"])
        env.reset(options={"task": task})
        plan = oracle_plan(env, task)
        assert 3 <= len(plan) == task.payload["plan_length"] <= MAX_TURNS
        bits, steps = 0.0, []
        for action in plan:
            bits += log2(len(set(env.valid_actions()) - HELP))
            steps.append(env.step(action))
        assert (task.difficulty == "hard") == (bits >= HARD_BITS)
        assert [done for _, _, done, _, _ in steps] == [False] * (len(plan) - 1) + [True]
        assert all(info["valid"] for *_, info in steps)
        assert steps[-1][4]["progress"] == 1.0
    assert all(len(found) >= 3 for found in templates.values())


@pytest.mark.slow
def test_the_suite_of_seed_0_keeps_its_promises(tasks: list[Task]) -> None:
    check_suite(tasks)


def test_sizes_span_easy_to_hard(tasks: list[Task]) -> None:
    for kind in DOMAINS:
        lengths = [task.payload["plan_length"] for task in tasks if task.kind == kind]
        assert min(lengths) <= 8
        assert max(lengths) >= 25
    assert min(Counter(task.difficulty for task in tasks).values()) >= 20


@pytest.mark.slow(40)
def test_generating_again_gives_the_frozen_suite_and_another_seed_another(
    tasks: list[Task], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert list(generate(0)) == tasks
    other = other_suite(tmp_path_factory)
    check_suite(other)
    assert not {form_of(task) for task in other} & {form_of(task) for task in tasks}


def test_the_prompts_examples_are_in_no_suite() -> None:
    for kind, problem in EXAMPLES.items():
        domain = parse_domain(domain_text(kind))
        assert form(domain, parse_problem(problem, domain)) in list_excluded_forms()


@pytest.mark.data
def test_no_open_task_is_a_published_one(published_data: Path, tasks: list[Task]) -> None:
    published = {form_of(task) for task in SPEC.suites.load_tasks("agentboard", published_data, 0)}
    assert published <= list_excluded_forms()
    assert not published & {form_of(task) for task in tasks}


@pytest.mark.data
def test_our_domain_files_say_the_same_as_the_published_ones(published_data: Path) -> None:
    def meaning(text: str) -> Any:
        domain = parse_domain(text)
        operators = []
        for operator in domain.operators:
            number = {variable: str(place) for place, (variable, _) in enumerate(operator.parameters)}
            parts = [
                sorted(tuple(number.get(name, name) for name in atom) for atom in atoms)
                for atoms in (operator.precondition, operator.add, operator.delete)
            ]
            operators.append((operator.name, [kind for _, kind in operator.parameters], parts))
        return domain.name, domain.supertype, domain.constants, domain.arity, sorted(operators)

    for kind in DOMAINS:
        published = (published_data / "agentboard" / "pddl" / f"{kind}.pddl").read_text(encoding="utf-8")
        assert meaning(domain_text(kind)) == meaning(published)


@settings(deadline=None)
@given(st.sampled_from(sorted(EXAMPLES)), st.randoms(use_true_random=False))
def test_a_form_does_not_depend_on_names_and_does_on_facts(kind: str, rng: random.Random) -> None:
    domain = parse_domain(domain_text(kind))
    problem = parse_problem(EXAMPLES[kind], domain)
    renamable = [name for name in problem.objects if name not in domain.constants]
    names = dict(zip(renamable, rng.sample(range(1000), len(renamable)), strict=True))

    def renamed(atom: tuple[str, ...]) -> tuple[str, ...]:
        return (atom[0], *(f"x{names[name]}" if name in names else name for name in atom[1:]))

    other = type(problem)(
        "other",
        problem.domain,
        {f"x{names[name]}" if name in names else name: kind for name, kind in problem.objects.items()},
        frozenset(map(renamed, problem.initial)),
        tuple(map(renamed, rng.sample(problem.goal, len(problem.goal)))),
    )
    assert form(domain, other) == form(domain, problem)
    dropped = rng.choice(sorted(problem.initial))
    fewer = type(problem)(
        problem.name, problem.domain, problem.objects, problem.initial - {dropped}, problem.goal
    )
    assert form(domain, fewer) != form(domain, problem)
