"""HotpotQA: questions that take two pages to answer, with a fixed Wikipedia to search (Yang et al., EMNLP 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.envs.base import (
    Actions,
    Draw,
    EnvSpec,
    ImportProgress,
    OwnBenchmark,
    PublishedTable,
    ScoreNames,
    TaskSuites,
    WorkerNeeds,
)
from evalharness.envs.hotpotqa.actions import ACTIONS, place
from evalharness.envs.hotpotqa.perturbations import WORDING

if TYPE_CHECKING:
    from evalharness.envs.base import Suite, Task, TextEnv


def _load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    from evalharness.envs.hotpotqa.tasks import load_tasks

    return load_tasks(suite, data, seed)


def _generate(seed: int) -> Iterable[Task]:
    from evalharness.envs.hotpotqa.generator import generate

    return generate(seed)


def _provenance(suite: Suite, data: Path | None, seed: int) -> Mapping[str, Any]:
    from evalharness.envs.hotpotqa.tasks import provenance

    return provenance(suite, data, seed)


def _make(data: Path | None) -> TextEnv:
    from evalharness.envs.hotpotqa.adapter import HotpotQAEnv

    return HotpotQAEnv(data=data)


def _import(source: Path, data: Path, progress: ImportProgress) -> Sequence[str]:
    from evalharness.envs.hotpotqa.importer import import_file

    return import_file(source, data, progress)


SPEC = EnvSpec(
    family="hotpotqa",
    title="HotpotQA",
    gym_id="evalharness/HotpotQA-v0",
    held_out=False,
    make=_make,
    suites=TaskSuites(
        expected={"hotpotqa": 7405, "hotpotqa-live": 7405, "open": 300},
        load_tasks=_load_tasks,
        generate=_generate,
        open_version=2,
    ),
    actions=Actions(ACTIONS, wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=32, step_timeout=20.0, reset_timeout=60.0, cost=0.2),
    place=place,
    own=OwnBenchmark(
        in_all=False,
        max_turns=7,
        draw={"hotpotqa": Draw(300, 233), "hotpotqa-live": Draw(300, 233)},
        scores=ScoreNames(
            "EM",
            "F1",
            {
                "supporting_facts": "supporting pages opened",
                "joint": "exact with every supporting page opened",
            },
        ),
        published=PublishedTable(
            "hotpotqa",
            "hotpotqa",
            {"success": "em", "progress": "f1"},
            "the published rows searched the live Wikipedia of their day, suite hotpotqa a fixed store: not comparable",
            other_suites=("hotpotqa-live",),
        ),
        provenance=_provenance,
        import_data=_import,
    ),
)
