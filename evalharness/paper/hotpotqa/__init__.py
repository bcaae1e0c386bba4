"""HotpotQA: questions that take two pages to answer, with a fixed Wikipedia to search (Yang et al., EMNLP 2018)."""

from __future__ import annotations

from evalharness.base.paths import prompts_folder
from evalharness.envs.base import (
    Actions,
    Draw,
    EnvSpec,
    OwnBenchmark,
    PublishedTable,
    ScoreNames,
    TaskSuites,
    WorkerNeeds,
    lazily,
)
from evalharness.paper.hotpotqa.actions import ACTIONS, place
from evalharness.paper.hotpotqa.perturbations import WORDING

SPEC = EnvSpec(
    family="hotpotqa",
    title="HotpotQA",
    gym_id="evalharness/HotpotQA-v0",
    held_out=False,
    make=lazily(f"{__name__}.adapter:HotpotQAEnv"),
    suites=TaskSuites(
        expected={"hotpotqa": 7405, "hotpotqa-live": 7405, "open": 300},
        load_tasks=lazily(f"{__name__}.tasks:load_tasks"),
        generate=lazily(f"{__name__}.generator:generate"),
        open_version=2,
    ),
    actions=Actions(ACTIONS, wording=WORDING),
    worker=WorkerNeeds(envs_per_worker=32, step_timeout=20.0, reset_timeout=60.0, cost=0.2),
    place=place,
    prompt_file=prompts_folder() / "paper" / "hotpotqa.yaml",
    own=OwnBenchmark(
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
        provenance=lazily(f"{__name__}.tasks:provenance"),
        import_data=lazily(f"{__name__}.importer:import_file"),
    ),
)
