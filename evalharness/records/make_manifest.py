"""Make the manifest of a run: it describes the run, so that anybody can decide whether two runs are comparable."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from evalharness.base.paths import checkout
from evalharness.base.version import __version__
from evalharness.config import RunConfig
from evalharness.envs.base import EnvSpec, ScoreNames, Task
from evalharness.records.identity import digest, make_identity
from evalharness.records.manifest import Manifest
from evalharness.records.stored import SCHEMA
from evalharness.suites.draws import describe_draws, expected_tasks

_PACKAGES = ("aiohttp", "gymnasium", "numpy")
"""Packages that every run depends on; environments add their own (`EnvSpec.packages`)."""


def _package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git_revision() -> str | None:
    """Return the harness's git revision, with `+changes` if files have changed; None outside a checkout."""
    root = checkout()
    if not (root / ".git").exists():
        return None
    try:
        head, status = (
            subprocess.run(
                ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=True
            ).stdout.strip()
            for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}+changes" if status else head


def make_manifest(
    config: RunConfig,
    tasks: Mapping[str, Sequence[Task]],
    specs: Mapping[str, EnvSpec],
    prompts: Mapping[str, str],
    model: Mapping[str, Any],
    data: Path | None = None,
    subset: Mapping[str, int] | None = None,
) -> Manifest:
    """Make a run's manifest. Continuing a run requires an equal `identity`; `sessions` describes each start.

    `tasks` and `prompts`: family -> tasks, family -> SHA-256 of the prompt file. `model`: from `Prepared.identity`.
    """
    facts = _suite_facts(config, {family: specs[family] for family in tasks}, data)
    limits = {family: config.agent.turn_limit(specs[family]) for family in tasks}
    identity = make_identity(config.identity(), tasks, limits, prompts, model)
    return Manifest.of(
        {
            "schema": SCHEMA,
            "digest": digest(identity),
            "identity": identity,
            "model_name": config.policy.display_name,
            "suite": config.selection.suite,
            "counts": {family: len(listed) for family, listed in tasks.items()},
            "titles": {family: specs[family].title for family in tasks},
            "held_out": {
                family: spec.suites.expected[config.selection.suite]
                for family, spec in specs.items()
                if spec.held_out and config.selection.suite in spec.suites.expected
            },
            "labels": {
                family: ",".join(sorted({t.labels for t in listed})) for family, listed in tasks.items()
            },
            **({"subset": dict(subset)} if subset else {}),
            **facts,
            "sessions": [
                {
                    "started": time.time(),
                    "evalharness": __version__,
                    "git": git_revision(),
                    "python": platform.python_version(),
                    "platform": f"{sys.platform} {platform.machine()}",
                    "packages": {
                        name: _package_version(name)
                        for name in sorted(
                            {*_PACKAGES, *(name for spec in specs.values() for name in spec.packages)}
                        )
                    },
                    "operation": {
                        "concurrency": config.policy.concurrency,
                        "workers": dict(config.execution.workers),
                        "endpoints": list(config.policy.endpoints),
                        "replicas": config.policy.replicas,
                    },
                    "label": config.execution.labels,
                }
            ],
        }
    )


def _suite_facts(config: RunConfig, specs: Mapping[str, EnvSpec], data: Path | None) -> dict[str, Any]:
    """Return keys of the manifest: the number of tasks in each whole family (`expected`) and, for some families, own
    names of scores (`scores`), the draw of tasks (`draw`), and facts about the tasks' data (`provenance`)."""
    suite, seed, questions = (
        config.selection.suite, config.selection.suite_seed, config.selection.questions,
    )  # fmt: skip
    some: dict[str, dict[str, Any]] = {
        "scores": {
            f: asdict(spec.own.scores) for f, spec in specs.items() if spec.own.scores != ScoreNames()
        },
        "draw": describe_draws(specs, suite, seed, questions),
        "provenance": {
            f: dict(spec.own.provenance(suite, data, seed))
            for f, spec in specs.items()
            if spec.own.provenance is not None
        },
    }
    expected = {f: expected_tasks(spec, suite, seed, questions) for f, spec in specs.items()}
    return {"expected": expected} | {key: value for key, value in some.items() if value}
