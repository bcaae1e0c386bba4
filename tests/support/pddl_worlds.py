"""Small made-up PDDL problems for the tests, in no suite."""

from __future__ import annotations

from itertools import pairwise

from evalharness.envs.base import Task
from evalharness.envs.pddl.engine import GroundedProblem
from evalharness.envs.pddl.problem import domain_text, make_task
from evalharness.envs.pddl.syntax import parse_domain, parse_problem


def world(kind: str, problem: str) -> GroundedProblem:
    domain = parse_domain(domain_text(kind))
    return GroundedProblem(domain, parse_problem(problem, domain))


def task(kind: str, problem: str) -> Task:
    return make_task("open", 0, kind, "easy", domain_text(kind), problem)


def gripper(goal: str, balls: dict[str, str], rooms: str = "rooma roomb", start: str = "rooma") -> str:
    """`balls`: ball -> room."""
    names = " ".join(balls)
    facts = [f"(room {room})" for room in rooms.split()]
    facts += [f"(ball {ball}) (at {ball} {room})" for ball, room in balls.items()]
    return f"""(define (problem made-up) (:domain gripper-strips) (:objects {rooms} {names} left right)
        (:init {" ".join(facts)} (gripper left) (gripper right) (free left) (free right) (at-robby {start}))
        (:goal (and {goal})))"""


def blockworld(goal: str, *towers: str) -> str:
    """Towers from the bottom up: "b1 b2"."""
    facts = []
    for tower in towers:
        blocks = tower.split()
        facts.append(f"(on-table {blocks[0]}) (clear {blocks[-1]})")
        facts += [f"(on {upper} {lower})" for lower, upper in pairwise(blocks)]
    return f"""(define (problem made-up) (:domain blocksworld-4ops) (:objects {" ".join(towers)})
        (:init (arm-empty) {" ".join(facts)}) (:goal (and {goal})))"""


def barman(goal: str, shots: int, *cocktails: tuple[int, int], ingredients: int = 3) -> str:
    """Cocktails as pairs of ingredient numbers."""
    shot_names = [f"shot{number + 1}" for number in range(shots)]
    vessels = ["shaker1", *shot_names]
    kinds = {
        "shaker": ["shaker1"],
        "hand": ["left", "right"],
        "shot": shot_names,
        "ingredient": [f"ingredient{number + 1}" for number in range(ingredients)],
        "dispenser": [f"dispenser{number + 1}" for number in range(ingredients)],
        "cocktail": [f"cocktail{number + 1}" for number in range(len(cocktails))],
        "level": ["l0", "l1", "l2"],
    }
    facts = [f"({fact} {vessel})" for vessel in vessels for fact in ("ontable", "clean", "empty")]
    facts += [f"(dispenses dispenser{number + 1} ingredient{number + 1})" for number in range(ingredients)]
    for number, parts in enumerate(cocktails):
        facts += [
            f"(cocktail-part{place} cocktail{number + 1} ingredient{part})"
            for place, part in enumerate(parts, 1)
        ]
    objects = " ".join(f"{' '.join(names)} - {kind}" for kind, names in kinds.items() if names)
    return f"""(define (problem made-up) (:domain barman) (:objects {objects})
        (:init {" ".join(facts)} (handempty left) (handempty right) (shaker-empty-level shaker1 l0)
               (shaker-level shaker1 l0) (next l0 l1) (next l1 l2))
        (:goal (and {goal})))"""


def tyreworld(goal: str, wheels: int = 1, *, boot: str = "closed") -> str:
    numbers = range(1, wheels + 1)
    kinds = {
        "tool": ["wrench", "jack", "pump"],
        "hub": [f"the-hub{number}" for number in numbers],
        "nut": [f"nuts{number}" for number in numbers],
        "container": ["boot"],
        "wheel": [f"{letter}{number}" for number in numbers for letter in "rw"],
    }
    facts = [f"(in {tool} boot)" for tool in kinds["tool"]]
    for number in numbers:
        facts += [
            f"(intact r{number}) (in r{number} boot) (not-inflated r{number}) (on w{number} the-hub{number})",
            f"(on-ground the-hub{number}) (tight nuts{number} the-hub{number}) (fastened the-hub{number})",
        ]
    objects = " ".join(f"{' '.join(names)} - {kind}" for kind, names in kinds.items())
    return f"""(define (problem made-up) (:domain tyreworld) (:objects {objects})
        (:init (unlocked boot) ({boot} boot) {" ".join(facts)}) (:goal (and {goal})))"""


EXAMPLES = {
    "gripper": gripper("(at ball1 rooma) (at ball2 rooma)", {"ball1": "roomb", "ball2": "roomb"}),
    "blockworld": blockworld("(on b1 b3)", "b1 b2", "b3"),
    "barman": """
        (define (problem made-up) (:domain barman)
          (:objects shaker1 - shaker left right - hand shot1 shot2 - shot ingredient1 ingredient2 - ingredient
                    cocktail1 - cocktail dispenser1 dispenser2 - dispenser l0 l1 l2 - level)
          (:init (ontable shaker1) (ontable shot1) (holding left shot2) (handempty right)
                 (dispenses dispenser1 ingredient1) (dispenses dispenser2 ingredient2)
                 (contains shaker1 ingredient2) (unshaked shaker1)
                 (clean shot1) (empty shot1) (empty shot2) (used shot2 ingredient2)
                 (shaker-empty-level shaker1 l0) (shaker-level shaker1 l1) (next l0 l1) (next l1 l2)
                 (cocktail-part1 cocktail1 ingredient1) (cocktail-part2 cocktail1 ingredient2))
          (:goal (and (contains shot1 cocktail1))))""",
    "tyreworld": """
        (define (problem made-up) (:domain tyreworld)
          (:objects wrench jack pump - tool the-hub1 - hub nuts1 - nut boot - container r1 w1 - wheel)
          (:init (in jack boot) (in pump boot) (have wrench) (unlocked boot) (closed boot)
                 (in r1 boot) (inflated r1) (intact r1) (on w1 the-hub1)
                 (on-ground the-hub1) (loose nuts1 the-hub1) (fastened the-hub1))
          (:goal (and (on r1 the-hub1))))""",
}
"""The worlds of the prompts' worked examples."""
