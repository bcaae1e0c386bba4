"""Find plans that solve a task, with the simulator's full knowledge.

It is a best-first search over the agent's sentences; each one is tried in the simulator and undone. The estimate of the
remaining cost counts the open subgoals, and the steps to the next one. The steps come from a distance map of the whole
level, in which closed doors, obstacles and missing keys have additional costs.
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
from evalharness.envs.babyai.mission import Cell, MissionProgress, cells_of, due_actions, object_cells
from evalharness.envs.babyai.observation import describe
from evalharness.envs.babyai.rules import LabelProgress, MissionRules, PublishedRules
from evalharness.envs.babyai.view import VECTORS
from evalharness.envs.babyai.world import World, WorldState

STEP, SHUT_DOOR, OBSTACLE, MISSING_KEY = 1, 2, 6, 60
"""Cost of entering a cell of the distance map."""
FULL_HANDS = 4
"""Cost of dropping the carried object first."""
SUBGOAL = 50
"""Cost of an open subgoal."""
PASSES = ((1, 6000), (4, 1000), (12, 1000))
"""(cost of a sentence, maximum number of tries) of each search. Each search looks for a shorter plan than the one
before. The first search goes directly to the subgoals; the last minimises turns."""


class _BestPlan(NamedTuple):
    sentences: list[str]
    accomplished: bool
    """Whether the mission is accomplished, by the simulator's verdict."""


class Oracle:
    """A planner for one task, with its own world in its first state."""

    def __init__(self, world: World, rules: PublishedRules | MissionRules) -> None:
        self._world = world
        self._rules = rules
        self._maps: dict[Any, dict[Cell, int]] = {}

    def plan(self, *, limit: int = 40) -> list[str]:
        """Return at most `limit` sentences that solve the task with full progress; [] if none are found.

        If labels decide on success, prefer a plan that also accomplishes the mission to a shorter plan.
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
        """Return a plan better than `best`, or `best`."""
        world, rules = self._world, self._rules
        numbers = count()
        said: dict[int, tuple[int, str]] = {}  # node -> (previous node, sentence between them)
        first = (world.state(), rules.remaining, False)
        frontier = [(0, 0, next(numbers), *first)]
        seen = {first}
        while frontier and budget > 0:
            _, length, node, state, remaining, accomplished = heapq.heappop(frontier)
            if length >= limit:
                continue
            world.restore(state)
            choices = available(world.view, world.direction).moves
            # Try sentences with few moves first: of sentences with the same effect, `go to` comes before `pickup`.
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
                        return _BestPlan(_sentences(said, node, sentence), accomplished=True)
                    if not best.sentences or (not best.accomplished and length + 1 < len(best.sentences)):
                        best = _BestPlan(_sentences(said, node, sentence), accomplished=False)
                child = (world.state(), rules.remaining, done_well)
                if verdict.done or child in seen:
                    continue
                seen.add(child)
                estimate = self._estimate(child[0])
                if estimate is not None:
                    number = next(numbers)
                    said[number] = (node, sentence)
                    cost = sentence_cost * (length + 1) + estimate
                    heapq.heappush(frontier, (cost, length + 1, number, *child))
        return best

    def _estimate(self, state: WorldState) -> int | None:
        """Estimate the remaining cost; return None in a dead end. The world must be in `state`."""
        errand = self._errand()
        if errand is None:
            return None
        steps = self._distance(state, errand.cells)
        if errand.hands_free and state.carrying is not None:
            steps += FULL_HANDS
        return SUBGOAL * len(self._rules.remaining) + steps

    def _errand(self) -> Errand | None:
        if isinstance(self._rules, MissionRules):
            return mission_errand(self._world, self._rules)
        return label_errand(self._world, self._rules)

    def _distance(self, state: WorldState, cells: tuple[Cell, ...]) -> int:
        held = state.carrying
        key = held.color if held is not None and held.type == "key" else None
        situation = (cells, key, state.things, state.doors)
        distances = self._maps.get(situation)
        if distances is None:
            distances = self._maps[situation] = _distance_map(self._world.simulator, cells, key)
        return distances.get(state.position, 10 * MISSING_KEY)


def _sentences(said: dict[int, tuple[int, str]], node: int, last: str) -> list[str]:
    sentences = [last]
    while node in said:
        node, sentence = said[node]
        sentences.append(sentence)
    return sentences[::-1]


def _distance_map(simulator: Any, cells: tuple[Cell, ...], key: str | None) -> dict[Cell, int]:
    """Return the cost of the route from every cell to the nearest of `cells`. `key`: colour of the carried key."""
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
class Errand:
    """The next goal of the search."""

    cells: tuple[Cell, ...]
    """Possible target cells; the agent must reach one of them."""
    hands_free: bool
    """Whether the agent must not carry an object, because it must pick up another one."""


def mission_errand(world: World, progress: MissionProgress) -> Errand | None:
    """Return the errand for the first open milestone; None if it cannot be reached."""
    simulator = world.simulator
    milestone = progress.wanted[min(progress.remaining)]
    if milestone.kind == "key":
        color = milestone.door.color
        cells = cells_of(simulator, lambda thing: thing.type == "key" and thing.color == color)
        return Errand(tuple(cells), hands_free=True) if cells else None
    if milestone.kind == "unlock":
        return Errand(tuple(cells_of(simulator, lambda thing: thing is milestone.door)), hands_free=False)
    action = due_actions(world)[milestone.clause]
    cells = object_cells(simulator, action)
    if not cells:
        return Errand(
            (world.position,), hands_free=True
        )  # the agent carries the object itself and must drop it first
    return Errand(tuple(cells), hands_free=type(action).__name__ == "PickupInstr")


def label_errand(world: World, progress: LabelProgress) -> Errand | None:
    """Return the errand for the first open label; None if any open label can no longer be reached."""
    first: Errand | None = None
    for position in progress.remaining:
        cells: list[Cell] = []
        carried = False
        for patterns in progress.alternatives:
            sight = _sight(patterns[position])
            if sight is not None:
                carried = carried or sight.carried
                cells.extend(_places(world, sight))
        if not cells:
            return None
        first = first or Errand(tuple(cells), hands_free=carried)
    return first


class _Sight(NamedTuple):
    """An object that a label pattern requires to be seen or carried."""

    kind: str
    color: str | None
    shut: bool
    """Whether it is a closed or locked door; no sentence can close an open door."""
    carried: bool
    place: tuple[int, int] | None
    """(cells ahead, cells to the right) of the object; None if the agent only has to stand in front of it."""


_NAME = re.compile(
    r"(red|green|blue|purple|yellow|grey|\*\*) (?:(open|closed|locked|\*\*) )?(door|key|ball|box)"
)
_PLACE = re.compile(
    r"(\d+) steps in front of you and (\d+) steps to your (left|right)|in front of you (\d+) steps"
)


@cache
def _sight(pattern: str) -> _Sight | None:
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
    return _Sight(
        kind, None if color == "**" else color, door in ("closed", "locked"), "carrying" in pattern, place
    )


def _places(world: World, sight: _Sight) -> Sequence[Cell]:
    def fits(thing: Any) -> bool:
        return (
            thing.type == sight.kind
            and sight.color in (None, thing.color)
            and not (sight.shut and thing.is_open)
        )

    simulator = world.simulator
    held = simulator.carrying
    if held is not None and fits(held):
        return [world.position]
    cells = cells_of(simulator, fits)
    return _viewpoints(simulator, cells, *sight.place) if sight.place else cells


def _viewpoints(simulator: Any, cells: Sequence[Cell], ahead: int, right: int) -> list[Cell]:
    """Return the cells from which the agent sees one of `cells` at this position in its view."""
    points = []
    for x, y in cells:
        for dx, dy in VECTORS:
            point = (x - ahead * dx + right * dy, y - ahead * dy - right * dx)
            if 0 <= point[0] < simulator.grid.width and 0 <= point[1] < simulator.grid.height:
                thing = simulator.grid.get(*point)
                if thing is None or thing.type == "door":
                    points.append(point)
    return points
