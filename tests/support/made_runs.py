"""Run folders with chosen outcomes, written by the product's own manifest and store."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalharness.base.grouping import group_by_key
from evalharness.config import RunConfig
from evalharness.envs import specs
from evalharness.envs.base import Task
from evalharness.protocol.prompt import load_prompt
from evalharness.records.episode import Episode, Turn
from evalharness.records.make_manifest import make_manifest
from evalharness.records.store import RunStore
from evalharness.results.task_range import load_ranges

Outcome = tuple[bool, float]
"""(success, progress)"""


def make_task(
    family: str,
    index: int,
    *,
    suite: str = "agentboard",
    labels: str = "official",
    goal: str = "",
    kind: str = "made",
) -> Task:
    return Task(
        id=f"{family}/{suite}/{index:03d}",
        family=family,
        suite=suite,  # type: ignore[arg-type]
        index=index,
        goal=goal or f"task {index}",
        difficulty="easy" if index % 2 else "hard",
        kind=kind,
        labels=labels,  # type: ignore[arg-type]
        subgoals=("one", "two"),
    )


def made_episode(
    task: Task,
    sample: int = 0,
    outcome: Outcome = (False, 0.0),
    perturbation: str | None = None,
    turns: int = 3,
) -> Episode:
    success, progress = outcome
    played = tuple(
        Turn(
            turn=i + 1,
            reply="Thought: go\nAction: look",
            thought="go",
            action="look",
            observation="a room",
            progress=progress if i else 0.0,
            valid=True,
        )
        for i in range(turns)
    )
    return Episode(
        task_id=task.id, family=task.family, suite=task.suite, kind=task.kind, difficulty=task.difficulty,
        labels=task.labels, sample=sample, perturbation=perturbation, goal=task.goal, first_observation="a room",
        turns=played, progress=progress, success=success, solved=success,
        ended_by="success" if success else "turn_limit", trims=(), subgoals=task.subgoals,
        task_hash=task.content_hash, prompt_hash="prompt", policy_s=0.0, environment_s=0.0, started=0.0, wall_s=0.0,
    )  # fmt: skip


def published_hash(task: Task) -> str:
    """So that no table says that the tasks are not the published ones."""
    hashes = {row.task_id: row.task_hash for row in load_ranges("agentboard")}
    return hashes.get(task.id, task.content_hash)


def make_run(
    folder: Path,
    outcomes: Mapping[str, Sequence[Outcome | Sequence[Outcome]]],
    *,
    name: str = "model",
    labels: Mapping[str, str | Sequence[str]] | None = None,
    goals: Mapping[str, str] | None = None,
    prompts: Mapping[str, str] | None = None,
    kinds: Mapping[str, Sequence[str]] | None = None,
    called: str | None = None,
    **options: Any,
) -> Path:
    """`outcomes`: family -> the outcome of each task, or the outcomes of its samples; `kinds`: of each task;
    `labels`: family -> whose they are, of all its tasks or of each. `prompts`:
    family -> hash of its prompt file, for those that are not the harness's own; `called`: `--name` of the run."""
    config = RunConfig.of(model="http://127.0.0.1:1/v1", model_name=name, name=called, **options)
    whose = dict(labels or {})
    tasks = [
        make_task(
            family,
            i,
            suite=config.selection.suite,
            labels=said if isinstance(said := whose.get(family, "official"), str) else said[i],
            goal=(goals or {}).get(family, ""),
            kind=kinds[family][i] if kinds else "made",
        )
        for family, listed in outcomes.items()
        for i in range(len(listed))
    ]
    own = {family: load_prompt(specs()[family]).sha256 for family in outcomes}
    manifest = make_manifest(
        config, group_by_key((t.family, t) for t in tasks), specs(), own | dict(prompts or {}), {"name": name}
    )
    with RunStore(folder) as store:
        store.begin(manifest.to_json())
        for task in tasks:
            given = outcomes[task.family][task.index]
            samples = [given] if isinstance(given[0], bool) else given
            for sample, outcome in enumerate(samples):
                episode = made_episode(task, sample, outcome, config.agent.perturb)  # type: ignore[arg-type]
                known = task.family not in (goals or {})
                store.append(replace(episode, task_hash=published_hash(task)) if known else episode)
    return folder


def made_study(folder: Path, kind: str, runs: Mapping[str, str] | Sequence[str]) -> Path:
    """`runs`: names of folders in it, or name -> where."""
    listed = dict(runs) if isinstance(runs, Mapping) else {name: name for name in runs}
    (folder / "study.json").write_text(json.dumps({"schema": 1, "kind": kind, "runs": listed}))
    return folder


def zip_of(folder: Path, archive: Path, more: Mapping[str, bytes] | None = None) -> Path:
    """A zip with the run as `alpha/`, and `more` members by name."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for path in sorted(folder.iterdir()):
            target.write(path, f"alpha/{path.name}")
        for name, content in (more or {}).items():
            target.writestr(name, content)
    return archive
