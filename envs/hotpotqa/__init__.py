"""HotpotQA: questions that take two pages to answer, with a fixed Wikipedia to search (Yang et al., EMNLP 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envs.base import Draw, EnvSpec, ImportProgress, PublishedTable, ScoreNames
from envs.hotpotqa.actions import ACTIONS, place
from envs.hotpotqa.generator import FAMILY, generate
from envs.hotpotqa.perturbations import WORDING
from envs.hotpotqa.questions import QUESTIONS
from envs.hotpotqa.tasks import OFFICIAL, OFFICIAL_QUESTIONS, load_tasks, provenance

if TYPE_CHECKING:
    from envs.base import TextEnv


def _make(data: Path | None) -> TextEnv:
    from envs.hotpotqa.adapter import HotpotQAEnv

    return HotpotQAEnv(data=data)


def _import(source: Path, data: Path, progress: ImportProgress) -> Sequence[str]:
    from envs.hotpotqa.importer import import_file

    return import_file(source, data, progress)


SPEC = EnvSpec(
    family=FAMILY,
    title="HotpotQA",
    gym_id="evalharness/HotpotQA-v0",
    expected={OFFICIAL: OFFICIAL_QUESTIONS, "open": QUESTIONS},
    held_out=False,
    in_all=False,
    max_turns=7,
    draw={OFFICIAL: Draw(300, 233)},
    scores=ScoreNames(
        "EM",
        "F1",
        {"supporting_facts": "supporting pages opened", "joint": "exact with every supporting page opened"},
    ),
    published=PublishedTable(
        "hotpotqa",
        OFFICIAL,
        {"success": "em", "progress": "f1"},
        "the published rows searched the live Wikipedia of their day, ours a fixed page store: not comparable",
    ),
    load_tasks=load_tasks,
    make=_make,
    generate=generate,
    provenance=provenance,
    import_data=_import,
    actions=ACTIONS,
    wording=WORDING,
    place=place,
    envs_per_worker=32,
    step_timeout=20.0,
    reset_timeout=60.0,
    cost=0.2,
)
