"""Compute digests that identify equal tasks: one of goal and first observation, and one of level and seed."""

from __future__ import annotations

from collections.abc import Iterator

from evalharness.envs.babyai.levels import LEVELS, SEEDS
from evalharness.envs.babyai.observation import describe
from evalharness.envs.babyai.world import World
from evalharness.envs.base import Task, content_form, digest


def forms(task: Task) -> list[str]:
    level, seed = str(task.payload["level"]), int(task.payload["seed"])
    world = World(level, seed, task.payload.get("parameters"))
    return [*content_form(task), *_start_forms(world, level, seed)]


def published_forms() -> Iterator[str]:
    for level in LEVELS:
        for seed in SEEDS:
            yield from _start_forms(World(level, seed), level, seed)


def _start_forms(world: World, level: str, seed: int) -> list[str]:
    return [digest(f"{world.mission}\n{digest(describe(world.view))}"), digest(f"{level}/{seed}")]
