"""List the simulator's 30 kinds of task, and the variations of each kind in each suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FAMILY = "sciworld"

OPEN_VERSION = 3
"""Version of the open suite. Since version 2, points that the simulator gives at the start do not count as progress.
Since version 3, the tasks of other suite seeds differ from those of seed 0, also in goal or first observation."""

SIMPLIFICATIONS = "selfWateringFlowerPots,openContainers,openDoors,noElectricalAction"
"""The simulator's simplifications in AgentBoard's tasks."""
CIRCUITS = "selfWateringFlowerPots,openContainers,openDoors"
"""Simplifications for our tasks about circuits. They do not have `noElectricalAction`, which removes `connect`."""

_LIFE = (0, 1, 2, 5, 6, 7, 20, 21, 22)
_FIND = (5, 6, 7, 20, 21, 22)

PUBLISHED: Mapping[str, Sequence[int]] = {
    "boil": (5, 6, 7, 8),
    "change-the-state-of-matter-of": (5, 6, 7, 8),
    "chemistry-mix": (5, 6, 7),
    "chemistry-mix-paint-secondary-color": (5, 6, 7),
    "chemistry-mix-paint-tertiary-color": (5, 6, 7),
    "find-animal": _FIND,
    "find-living-thing": _FIND,
    "find-non-living-thing": _FIND,
    "freeze": (6,),
    "identify-life-stages-1": (0, 1, 2, 6, 7),
    "lifespan-longest-lived": _LIFE,
    "lifespan-longest-lived-then-shortest-lived": _LIFE,
    "lifespan-shortest-lived": _LIFE,
    "measure-melting-point-known-substance": (0, 1, 2, 5, 6, 7, 20, 21),
    "measure-melting-point-unknown-substance": (0, 1, 2, 5, 6, 7),
    "use-thermometer": (0, 1, 2, 5, 6, 7, 21, 22),
}
"""Kind -> numbers of its variations in AgentBoard's suite."""
EXAMPLE = (("find-plant", 206),)

QUOTA: Mapping[str, int] = {
    "boil": 2,
    "change-the-state-of-matter-of": 2,
    "chemistry-mix": 4,
    "chemistry-mix-paint-secondary-color": 5,
    "chemistry-mix-paint-tertiary-color": 4,
    "find-animal": 4,
    "find-living-thing": 4,
    "find-non-living-thing": 3,
    "find-plant": 5,
    "freeze": 2,
    "identify-life-stages-1": 3,
    "identify-life-stages-2": 3,
    "inclined-plane-determine-angle": 3,
    "inclined-plane-friction-named-surfaces": 4,
    "inclined-plane-friction-unnamed-surfaces": 3,
    "lifespan-longest-lived": 4,
    "lifespan-longest-lived-then-shortest-lived": 4,
    "lifespan-shortest-lived": 3,
    "measure-melting-point-known-substance": 4,
    "measure-melting-point-unknown-substance": 4,
    "melt": 2,
    "power-component": 3,
    "power-component-renewable-vs-nonrenewable-energy": 3,
    "test-conductivity": 4,
    "test-conductivity-of-unknown-substances": 4,
    "use-thermometer": 4,
}
"""Kind -> number of tasks in an open suite.

The suite lacks the four kinds in which plants must grow (`grow-fruit`, `grow-plant`, `mendelian-genetics-*`): our
shortest plan for such a task has 39 turns, and the limit is 30.
"""

UNWRAPPED, AGENTGYM = "unwrapped", "agentgym"
"""Suites without simplifications and without AgentBoard's rules: the simulator's score measures progress. `unwrapped`
has one test variation of each of the 30 kinds, as TALES (tale-suite, commit fdbdf2b); after a mistake that fails the
task, the task starts again. `agentgym` has all variations of 23 kinds, in AgentGym's order (commit 3ef9235)."""
VARIATIONS: Mapping[str, tuple[int, int]] = {
    "boil": (30, 21),
    "melt": (30, 21),
    "freeze": (30, 21),
    "change-the-state-of-matter-of": (30, 21),
    "use-thermometer": (540, 405),
    "measure-melting-point-known-substance": (436, 327),
    "measure-melting-point-unknown-substance": (300, 225),
    "power-component": (20, 15),
    "power-component-renewable-vs-nonrenewable-energy": (20, 15),
    "test-conductivity": (900, 675),
    "test-conductivity-of-unknown-substances": (600, 450),
    "find-living-thing": (300, 225),
    "find-non-living-thing": (300, 225),
    "find-plant": (300, 225),
    "find-animal": (300, 225),
    "chemistry-mix": (32, 24),
    "chemistry-mix-paint-secondary-color": (36, 27),
    "chemistry-mix-paint-tertiary-color": (36, 27),
    "lifespan-longest-lived": (125, 93),
    "lifespan-shortest-lived": (125, 93),
    "lifespan-longest-lived-then-shortest-lived": (125, 93),
    "identify-life-stages-1": (14, 9),
    "identify-life-stages-2": (10, 6),
    "grow-fruit": (126, 93),
    "grow-plant": (126, 93),
    "inclined-plane-determine-angle": (168, 126),
    "inclined-plane-friction-named-surfaces": (1386, 1038),
    "inclined-plane-friction-unnamed-surfaces": (162, 120),
    "mendelian-genetics-known-plant": (120, 90),
    "mendelian-genetics-unknown-plant": (480, 360),
}
"""Kind -> (number of its variations, number of its first test variation), as in the simulator."""
NOT_IN_AGENTGYM = ("grow-", "inclined-", "mendelian-")
EXPECTED: Mapping[str, int] = {
    UNWRAPPED: len(VARIATIONS),
    AGENTGYM: sum(n for kind, (n, _) in VARIATIONS.items() if not kind.startswith(NOT_IN_AGENTGYM)),
}

FEW_VARIATIONS: Mapping[str, int] = {
    kind: left for kind in QUOTA if (left := VARIATIONS[kind][0] - len(PUBLISHED.get(kind, ()))) < 100
}
"""Kind -> number of variations that AgentBoard does not use, if below 100: suite seeds may then share tasks."""


def simplifications(kind: str) -> str:
    """Return the simplifications for the tasks of a kind in the open suites."""
    return CIRCUITS if kind.startswith(("power-component", "test-conductivity")) else SIMPLIFICATIONS
