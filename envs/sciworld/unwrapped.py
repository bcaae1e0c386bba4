"""The simulator's tasks without simplifications, in its own words and by its own score, as other groups play them.

`unwrapped`: TALES (tale-suite, commit fdbdf2b), a test variation of each of the 30 kinds; a task that a mistake fails
begins again. `agentgym`: AgentGym (commit 3ef9235), all variations of 23 kinds in its order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalharness.envs.base import Task
from evalharness.envs.sciworld.kinds import FAMILY

UNWRAPPED, AGENTGYM = "unwrapped", "agentgym"
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
"""Kind -> how many variations it has, and the first one for tests (scienceworld 1.2.3; a test asks the simulator)."""
_NOT_IN_AGENTGYM = ("grow-", "inclined-", "mendelian-")
EXPECTED: Mapping[str, int] = {
    UNWRAPPED: len(VARIATIONS),
    AGENTGYM: sum(n for kind, (n, _) in VARIATIONS.items() if not kind.startswith(_NOT_IN_AGENTGYM)),
}


def unwrapped_tasks(suite: str, seed: int) -> list[Task]:
    """`seed`: which test variation of each kind, as TALES counts (`unwrapped`)."""
    if suite == AGENTGYM:
        kinds = [kind for kind in VARIATIONS if not kind.startswith(_NOT_IN_AGENTGYM)]
        cases = [(kind, number) for kind in kinds for number in range(VARIATIONS[kind][0])]
    else:
        cases = [
            (kind, first + seed % (count - first)) for kind, (count, first) in sorted(VARIATIONS.items())
        ]
    return _tasks(suite, cases)


def _tasks(suite: str, cases: Sequence[tuple[str, int]]) -> list[Task]:
    return [
        Task(
            id=f"{FAMILY}/{suite}/{index:03d}",
            family=FAMILY,
            suite=suite,
            index=index,
            goal="",  # in the simulator's words, known when it is loaded
            difficulty="hard",
            kind=kind,
            labels="simulator",
            subgoals=(),
            payload={"task": kind, "variation": variation, "simplifications": ""},
        )
        for index, (kind, variation) in enumerate(cases)
    ]
