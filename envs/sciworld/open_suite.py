"""The open suite: (task, variation) pairs of the simulator that are not in the published set, proven solvable in time.

`python -m envs.sciworld.open_suite` freezes the suite of seed 0 into `open_suite.json`.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import platformdirs

from envs.base import Task
from envs.sciworld.tasks import FAMILY, SIMPLIFICATIONS

COUNT = 90
MIN_TURNS, MAX_TURNS = 3, 30
EASY_TURNS = 8
"""Plans up to this long make a task easy."""
REPLAYS = 40
"""How many replays the shortening of one gold path may take while a suite is made."""

ELECTRICAL = "selfWateringFlowerPots,openContainers,openDoors"
"""For tasks that are about circuits."""

PUBLISHED: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(
        ("lifespan-longest-lived", "lifespan-longest-lived-then-shortest-lived", "lifespan-shortest-lived"),
        (0, 1, 2, 5, 6, 7, 20, 21, 22),
    ),
    "measure-melting-point-known-substance": (0, 1, 2, 5, 6, 7, 20, 21),
    "measure-melting-point-unknown-substance": (0, 1, 2, 5, 6, 7),
    "use-thermometer": (0, 1, 2, 5, 6, 7, 21, 22),
    "freeze": (6,),
    "identify-life-stages-1": (0, 1, 2, 6, 7),
    "chemistry-mix-paint-tertiary-color": (5, 6, 7),
    **dict.fromkeys(("find-animal", "find-living-thing", "find-non-living-thing"), (5, 6, 7, 20, 21, 22)),
    "boil": (5, 6, 7, 8),
    "change-the-state-of-matter-of": (5, 6, 7, 8),
    "chemistry-mix": (5, 6, 7),
    "chemistry-mix-paint-secondary-color": (5, 6, 7),
}
"""The variations of the published set."""
EXAMPLE = ("find-plant", 206)
"""The prompt's worked example."""


def load_open(suite_seed: int) -> list[Task]:
    """The suite of this seed: kept for seed 0, else made anew (minutes) and kept in the user's cache folder."""
    if suite_seed == 0:
        return [_task(row) for row in frozen()]
    cached = _cache_file(suite_seed)
    if not cached.is_file():
        rows = list(generate_open(suite_seed))
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_suffix(".part")
        partial.write_text(_dump(rows), encoding="utf-8")
        partial.replace(cached)
    return [_task(row) for row in json.loads(cached.read_text(encoding="utf-8"))]


@cache
def frozen() -> list[dict[str, Any]]:
    text = files("envs.sciworld").joinpath("open_suite.json").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = json.loads(text)
    return rows
