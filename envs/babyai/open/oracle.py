"""Find plans that solve a task, with full knowledge of the level.

The oracle does a best-first search over the agent's actions: it plays an action in the simulator, and then restores the
earlier state. It estimates the remaining cost of a state from the number of subgoals that are left and from the
distance to the next subgoal. In this distance, closed doors, obstacles and missing keys have additional costs.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from evalharness.envs.babyai.actions import available
from evalharness.envs.babyai.mission import Cell, MissionProgress, cells_of, list_actions, object_cells
from evalharness.envs.babyai.observation import describe
from evalharness.envs.babyai.rules import LabelProgress, MissionRules, PublishedRules
from evalharness.envs.babyai.view import VECTORS
from evalharness.envs.babyai.world import World, WorldState

STEP, SHUT_DOOR, OBSTACLE, MISSING_KEY = 1, 2, 6, 60
"""Costs of entering a cell that is free, has a closed door, has an object, or has a locked door without its key."""
FULL_HANDS = 4
"""Additional cost if the agent must first drop the carried object."""
SUBGOAL = 50
"""Estimated cost of each subgoal that is left."""
PASSES = ((1, 6000), (4, 1000), (12, 1000))
"""(cost of an action, maximum number of tried actions) of each search. The searches run in this order. Each of them
looks for a shorter plan. With a low cost of an action, the search finds a plan fast; a high cost favours short
plans."""


class _BestPlan(NamedTuple):
    sentences: list[str]
    accomplished: bool
    """Whether the plan also completes the mission in minigrid."""


class Oracle:
    """A planner for one task. `world` must be at the start of the task, and is used only by this planner."""

    def __init__(self, world: World, rules: PublishedRules | MissionRules) -> None:
        self._world = world
        self._rules = rules
        self._maps: dict[Any, dict[Cell, int]] = {}

    def plan(self, *, limit: int = 40) -> list[str]:
        """Return at most `limit` actions that solve the task with full progress; [] if the oracle finds no such plan.

        If labels decide on success, a plan that also completes minigrid's mission is preferred to a shorter plan.
        """
        start, progress = self._world.state(), self._rules.remaining
        best = _BestPlan([], accomplished=False)
        for sentence_cost, budget in PASSES:
            self._world.restore(start)
            self._rules.restore(progress)
            best = self._search(sentence_cost, budget, limit, best)
            limit = len(best.sentences) - 1 if best.accomplished else limit
        self._world.restore(start)
        self._rules.restore(progress)
        return best.sentences

    def _search(self, sentence_cost: int, budget: int, limit: int, best: _BestPlan) -> _BestPlan:
        """Return a better plan than `best`; if the search finds none, return `best`."""
        world, rules = self._world, self._rules
        numbers = count()
        parents: dict[int, tuple[int, str]] = {}  # node -> (parent, action from the parent)
        first = (world.state(), rules.remaining, False)
        frontier = [(0, 0, next(numbers), *first)]
        seen = {first}
        while frontier and budget > 0:
            _, length, node, state, remaining, accomplished = heapq.heappop(frontier)
            if length >= limit:
                continue
            world.restore(state)
            choices = available(world.view, world.direction).moves
            # Try actions with few moves first: `go to` is preferred to `pickup` if both have the same effect.
            for sentence, moves in sorted(choices.items(), key=lambda choice: len(choice[1])):
                if not moves:
                    continue
                world.restore(state)
                rules.restore(remaining)
                outcome = rules.perform(world, moves)
                verdict = rules.result_of(outcome, describe(world.view))
                budget -= 1
                done_well = accomplished or outcome.succeeded
                if verdict.success and rules.rate == 1:
                    if done_well:
                        return _BestPlan(_sentences(parents, node, sentence), accomplished=True)
                    if not best.sentences or (not best.accomplished and length + 1 < len(best.sentences)):
                        best = _BestPlan(_sentences(parents, node, sentence), accomplished=False)
                child = (world.state(), rules.remaining, done_well)
                if verdict.done or child in seen:
                    continue
                seen.add(child)
                estimate = self._estimate(child[0])
                if estimate is not None:
                    number = next(numbers)
                    parents[number] = (node, sentence)
                    cost = sentence_cost * (length + 1) + estimate
                    heapq.heappush(frontier, (cost, length + 1, number, *child))
        return best

    def _estimate(self, state: WorldState) -> int | None:
        """Return an estimate of the cost from `state`; None if the task cannot be solved. The world is in `state`."""
        target = self._find_target()
        if target is None:
            return None
        steps = self._distance(state, target.cells)
        if target.hands_free and state.carrying is not None:
            steps += FULL_HANDS
        return SUBGOAL * len(self._rules.remaining) + steps

    def _find_target(self) -> Target | None:
        if isinstance(self._rules, MissionRules):
            return find_mission_target(self._world, self._rules)
        return find_label_target(self._world, self._rules)

    def _distance(self, state: WorldState, cells: tuple[Cell, ...]) -> int:
        held = state.carrying
        key = held.color if held is not None and held.type == "key" else None
        situation = (cells, key, state.things, state.doors)
        distances = self._maps.get(situation)
        if distances is None:
            distances = self._maps[situation] = _distance_map(self._world.simulator, cells, key)
        return distances.get(state.position, 10 * MISSING_KEY)


def _sentences(parents: dict[int, tuple[int, str]], node: int, last: str) -> list[str]:
    sentences = [last]
    while node in parents:
        node, sentence = parents[node]
        sentences.append(sentence)
    return sentences[::-1]


def _distance_map(simulator: Any, cells: tuple[Cell, ...], key: str | None) -> dict[Cell, int]:
    """Map every cell to the cost of its cheapest route to one of `cells`. `key`: colour of the carried key."""
    grid = simulator.grid
    costs: dict[Cell, int] = {}
    queue = [(0, cell) for cell in cells]
    heapq.heapify(queue)
    while queue:
        cost, cell = heapq.heappop(queue)
        if cell in costs:
            continue
        costs[cell] = cost
        onward = cost + (STEP if cost == 0 else _entering(grid.get(*cell), key))
        x, y = cell
        for beside in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)):
            if beside in costs or not (0 <= beside[0] < grid.width and 0 <= beside[1] < grid.height):
                continue
            thing = grid.get(*beside)
            if thing is None or thing.type != "wall":
                heapq.heappush(queue, (onward, beside))
    return costs


def _entering(thing: Any, key: str | None) -> int:
    if thing is None:
        return STEP
    if thing.type != "door":
        return OBSTACLE
    if thing.is_open:
        return STEP
    return SHUT_DOOR if not thing.is_locked or thing.color == key else MISSING_KEY


@dataclass(frozen=True)
class Target:
    """The next position that the agent must reach."""

    cells: tuple[Cell, ...]
    """The agent must reach one of these cells."""
    hands_free: bool
    """Whether the agent must not carry an object there, for example because it must pick up another object."""


def find_mission_target(world: World, progress: MissionProgress) -> Target | None:
    """Return the target for the first milestone that is left; None if the wanted key is not in the level."""
    simulator = world.simulator
    milestone = progress.wanted[min(progress.remaining)]
    if milestone.kind == "key":
        color = milestone.door.color
        cells = cells_of(simulator, lambda thing: thing.type == "key" and thing.color == color)
        return Target(tuple(cells), hands_free=True) if cells else None
    if milestone.kind == "unlock":
        return Target(tuple(cells_of(simulator, lambda thing: thing is milestone.door)), hands_free=False)
    action = list_actions(world)[milestone.clause]
    cells = object_cells(simulator, action)
    if not cells:
        # The agent carries the wanted object, and must drop it to face it.
        return Target((world.position,), hands_free=True)
    return Target(tuple(cells), hands_free=type(action).__name__ == "PickupInstr")


def find_label_target(world: World, progress: LabelProgress) -> Target | None:
    """Return the target for the first label that is left; None if any label that is left cannot match any more."""
    first: Target | None = None
    for position in progress.remaining:
        cells: list[Cell] = []
        carried = False
        for patterns in progress.alternatives:
            wanted = _parse_label(patterns[position])
            if wanted is not None:
                carried = carried or wanted.carried
                cells.extend(_places(world, wanted))
        if not cells:
            return None
        first = first or Target(tuple(cells), hands_free=carried)
    return first


class _WantedObject(NamedTuple):
    """An object that the agent must see or carry so that a subgoal pattern of the task matches."""

    kind: str
    color: str | None
    shut: bool
    """Whether the object must be a closed or locked door; the agent cannot close an open door."""
    carried: bool
    place: tuple[int, int] | None
    """Required position of the object in the view (cells ahead, cells to the right); None: any position."""


_NAME = re.compile(
    r"(red|green|blue|purple|yellow|grey|\*\*) (?:(open|closed|locked|\*\*) )?(door|key|ball|box)"
)
_PLACE = re.compile(
    r"(\d+) steps in front of you and (\d+) steps to your (left|right)|in front of you (\d+) steps"
)


@cache
def _parse_label(pattern: str) -> _WantedObject | None:
    match = _NAME.search(pattern)
    if match is None:
        return None
    color, door, kind = match.groups()
    where = _PLACE.search(pattern)
    place = None
    if where and where[4] is None:
        place = (int(where[1]), int(where[2]) * (-1 if where[3] == "left" else 1))
    elif where and where[4] != "1":
        place = (int(where[4]), 0)
    return _WantedObject(
        kind, None if color == "**" else color, door in ("closed", "locked"), "carrying" in pattern, place
    )


def _places(world: World, wanted: _WantedObject) -> Sequence[Cell]:
    def fits(thing: Any) -> bool:
        return (
            thing.type == wanted.kind
            and wanted.color in (None, thing.color)
            and not (wanted.shut and thing.is_open)
        )

    simulator = world.simulator
    held = simulator.carrying
    if held is not None and fits(held):
        return [world.position]
    cells = cells_of(simulator, fits)
    return _viewpoints(simulator, cells, *wanted.place) if wanted.place else cells


def _viewpoints(simulator: Any, cells: Sequence[Cell], ahead: int, right: int) -> list[Cell]:
    """Return the cells from which one of `cells` is `ahead` cells before the agent and `right` cells to its right."""
    points = []
    for x, y in cells:
        for dx, dy in VECTORS:
            point = (x - ahead * dx + right * dy, y - ahead * dy - right * dx)
            if 0 <= point[0] < simulator.grid.width and 0 <= point[1] < simulator.grid.height:
                thing = simulator.grid.get(*point)
                if thing is None or thing.type == "door":
                    points.append(point)
    return points
