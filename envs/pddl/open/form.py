"""Compute the form of a problem: a digest that stays the same if objects get other names."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from evalharness.envs.base import Task
from evalharness.envs.pddl.syntax import Domain, Problem, parse_domain, parse_problem


def forms(task: Task) -> list[str]:
    domain = parse_domain(task.payload["domain"])
    return [form(domain, parse_problem(task.payload["problem"], domain))]


def form(domain: Domain, problem: Problem) -> str:
    """Return a digest that is equal for two problems if they differ only in the names of objects.

    The method is colour refinement (Weisfeiler and Leman 1968). The first colour of an object is its type. Each round
    adds to the colour the facts about the object, with the colours of the other objects in these facts. Problems with
    different digests are different. Problems with equal digests are nearly always equal, so we treat them as equal.
    """
    objects = {**domain.constants, **problem.objects}
    facts = [("init", atom) for atom in problem.initial] + [("goal", atom) for atom in problem.goal]
    # The first colour of a constant includes its name, because the actions of the domain mention this name.
    colour = {name: _digest(kind, name if name in domain.constants else "") for name, kind in objects.items()}
    classes = 0
    while classes < len(set(colour.values())):
        classes = len(set(colour.values()))
        around: dict[str, list[str]] = defaultdict(list)
        for role, (predicate, *names) in facts:
            for place, name in enumerate(names):
                around[name].append(_digest(role, predicate, str(place), *(colour[other] for other in names)))
        colour = {name: _digest(colour[name], *sorted(around[name])) for name in objects}
    return _digest(
        domain.name,
        *sorted(colour.values()),
        *sorted(_digest(role, atom[0], *(colour[name] for name in atom[1:])) for role, atom in facts),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
