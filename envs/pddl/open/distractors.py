"""Objects and rooms that a problem's goal does not need. Nothing that is there is touched, and none of it helps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from string import ascii_lowercase

from evalharness.envs.base import Task, distractor_rooms
from evalharness.envs.pddl.open.drafts import Draft
from evalharness.envs.pddl.problem import make_task
from evalharness.envs.pddl.syntax import Atom, Problem, parse_domain, parse_problem

Added = tuple[dict[str, str], list[Atom]]
"""Objects with their types, and what is true of them."""


def distract(task: Task, count: int) -> Task | None:
    """The task with `count` objects more; None for a published problem, whose names can be others."""
    if task.suite != "open":
        return None
    domain = parse_domain(task.payload["domain"])
    problem = parse_problem(task.payload["problem"], domain)
    random = Random(f"pddl distractors {count} {task.content_hash}")
    objects, facts = _DOMAINS[task.kind](random, problem, count)
    template = task.payload["template"]
    draft = Draft(template, problem.objects | objects, problem.initial | set(facts), problem.goal)
    payload = {key: task.payload[key] for key in ("number", "draft", "template")}
    made = make_task(
        "open",
        task.index,
        task.kind,
        task.difficulty,
        task.payload["domain"],
        draft.text(f"{problem.name}-and-{count}", domain.name),
        **payload,
    )
    assert (made.goal, made.subgoals) == (task.goal, task.subgoals)
    return replace(made, id=task.id)


def _numbers(problem: Problem) -> Iterator[int]:
    """Numbers that no object has."""
    used = [int(number) for name in problem.objects for number in re.findall(r"\d+", name)]
    most = max(used, default=0)
    while True:
        yield (most := most + 1)


def _gripper(random: Random, problem: Problem, count: int) -> Added:
    """Balls, and rooms that nothing has to be brought to."""
    rooms = [name for name in problem.objects if ("room", name) in problem.initial]
    free = [name for letter in ascii_lowercase if (name := f"room{letter}") not in rooms]
    more = free[: distractor_rooms(count)]
    balls = [f"ball{number}" for number, _ in zip(_numbers(problem), range(count), strict=False)]
    facts: list[Atom] = [("room", room) for room in more]
    for ball in balls:
        facts += [("ball", ball), ("at", ball, random.choice([*rooms, *more]))]
    return dict.fromkeys([*more, *balls], "object"), facts


def _blockworld(random: Random, problem: Problem, count: int) -> Added:
    """Towers of their own, so that no block of the goal has anything more on it."""
    facts: list[Atom] = []
    top: str | None = None
    blocks = [f"b{number}" for number, _ in zip(_numbers(problem), range(count), strict=False)]
    for block in blocks:
        if top is not None and random.random() < 0.6:
            facts.append(("on", block, top))
        else:
            facts += [("clear", top)] if top is not None else []
            facts.append(("on-table", block))
        top = block
    return dict.fromkeys(blocks, "object"), [*facts, ("clear", blocks[-1])]


def _barman(random: Random, problem: Problem, count: int) -> Added:
    """In turn an ingredient with its dispenser, a cocktail that has it, and a shot that was used for it. (A clean shot
    would save washing one, so it would help.)"""
    known = sorted(name for name, kind in problem.objects.items() if kind == "ingredient")
    objects: dict[str, str] = {}
    facts: list[Atom] = []
    latest = ""
    for number, which in zip(_numbers(problem), range(count), strict=False):
        if which % 3 == 0:
            latest, tap = f"ingredient{number}", f"dispenser{number}"
            objects |= {latest: "ingredient", tap: "dispenser"}
            facts.append(("dispenses", tap, latest))
        elif which % 3 == 1:
            drink = f"cocktail{number}"
            objects[drink] = "cocktail"
            facts += [("cocktail-part1", drink, latest), ("cocktail-part2", drink, random.choice(known))]
        else:
            shot = f"shot{number}"
            objects[shot] = "shot"
            facts += [("ontable", shot), ("contains", shot, latest), ("used", shot, latest)]
    return objects, facts


def _tyreworld(random: Random, problem: Problem, count: int) -> Added:
    """In turn a spare wheel and a nut that are where the others are kept, and a bare hub on the ground."""
    objects: dict[str, str] = {}
    facts: list[Atom] = []
    for number, which in zip(_numbers(problem), range(count), strict=False):
        if which % 3 == 0:
            objects[wheel := f"r{number}"] = "wheel"
            facts += [("in", wheel, "boot"), ("intact", wheel), ("not-inflated", wheel)]
        elif which % 3 == 1:
            objects[nut := f"nuts{number}"] = "nut"
            facts.append(("in", nut, "boot"))
        else:
            objects[hub := f"the-hub{number}"] = "hub"
            facts += [("on-ground", hub), ("free", hub), ("unfastened", hub)]
    return objects, facts


_DOMAINS: dict[str, Callable[[Random, Problem, int], Added]] = {
    "gripper": _gripper,
    "blockworld": _blockworld,
    "barman": _barman,
    "tyreworld": _tyreworld,
}
