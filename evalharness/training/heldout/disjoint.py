"""Proof that no task of an evaluation is one that the trainer is served: by content, and up to renaming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalharness.base.errors import UserError
from evalharness.base.text import printable
from evalharness.envs.base import EnvSpec, Task, teaching_of
from evalharness.records.manifest import Disjoint
from evalharness.training.datasets.overlap import Excluded, task_forms

_SHOWN = 3


def prove_disjoint(
    server: str, trained: Sequence[Mapping[str, Any]], evaluated: Sequence[Task], specs: Mapping[str, EnvSpec]
) -> Disjoint:
    """`trained`: tasks as the environment server describes them. Raises UserError where one of them is evaluated, or
    does not say what it is."""
    families: dict[str, Excluded] = {}
    for family in sorted({task.family for task in evaluated}):
        world = teaching_of(specs[family])
        own = [task for task in evaluated if task.family == family]
        families[family] = Excluded(
            hashes={task.content_hash: task.id for task in own},
            forms={form: task.id for task in own for form in task_forms(world, task)},
            compared={"evaluated": len(own), "trained": 0},
            world=world,
        )
    same, seeds = [], set[int]()
    for task in trained:
        try:
            name, family, seed = str(task["id"]), task["family"], task["suite_seed"]
            content, forms = str(task["task_hash"]), [str(form) for form in task["task_forms"]]
        except (KeyError, TypeError):
            raise UserError(
                f"--env {server}: it does not say what its tasks are (`task_hash`, `task_forms`); start it with this "
                "version of evalharness"
            ) from None
        if isinstance(seed, int):
            seeds.add(seed)
        if (found := families.get(family)) is None:
            continue
        found.compared["trained"] += 1
        if (twin := found.reason(content, forms)) is not None:
            same.append(f"{twin} is {name}")
    if same:
        listed = printable("; ".join(same[:_SHOWN]), single_line=True)
        more = f" and {len(same) - _SHOWN} more" if len(same) > _SHOWN else ""
        raise UserError(
            f"not held out: {len(same)} of the {len(trained)} training tasks are evaluated ({listed}{more}); evaluate "
            "other families (--tasks) or another suite seed, or serve the trainer other --train-seeds"
        )
    return Disjoint.of(
        {
            "env": server,
            "train_seeds": sorted(seeds),
            "train_tasks": len(trained),
            "compared": {family: dict(found.compared) for family, found in families.items()},
        }
    )
