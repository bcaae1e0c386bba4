"""What a run was made of: enough to say later whether two runs may be compared."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from envs.base import EnvSpec, Task
from evalharness._version import __version__
from evalharness.config import RunConfig
from evalharness.paths import checkout
from evalharness.records.identity import digest, run_identity

SCHEMA = 1
_PACKAGES = ("aiohttp", "gymnasium", "jericho", "minigrid", "numpy", "scienceworld", "textworld")


def _package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git_revision() -> str | None:
    """The harness's own revision, with `+changes` when its tree is not clean; None outside a checkout."""
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
    tasks: Sequence[Task],
    specs: Mapping[str, EnvSpec],
    prompts: Mapping[str, str],
    model: Mapping[str, Any],
) -> dict[str, Any]:
    """`identity` is what must be equal for a run to be continued; `sessions` tells of each time it was."""
    by_family: dict[str, list[Task]] = {}
    for task in tasks:
        by_family.setdefault(task.family, []).append(task)
    identity = run_identity(config, by_family, prompts, model)
    return {
        "schema": SCHEMA,
        "digest": digest(identity),
        "identity": identity,
        "model_name": config.display_name,
        "suite": config.suite,
        "counts": {family: len(listed) for family, listed in by_family.items()},
        "expected": {family: specs[family].expected[config.suite] for family in by_family},
        "titles": {family: specs[family].title for family in by_family},
        "held_out": {family: spec.expected[config.suite] for family, spec in specs.items() if spec.held_out},
        "labels": {
            family: ",".join(sorted({t.labels for t in listed})) for family, listed in by_family.items()
        },
        "sessions": [
            {
                "started": time.time(),
                "evalharness": __version__,
                "git": git_revision(),
                "python": platform.python_version(),
                "platform": f"{sys.platform} {platform.machine()}",
                "packages": {name: _package_version(name) for name in _PACKAGES},
                "operation": {
                    "concurrency": config.concurrency,
                    "workers": dict(config.workers),
                    "endpoints": list(config.endpoints),
                    "replicas": config.replicas,
                    "cluster": config.cluster,
                },
                "label": dict(config.label),
            }
        ],
    }
