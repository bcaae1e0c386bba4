"""Folders as many a project has them: their files have the names of packages that we import or have ourselves. Who runs
one is found out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("envs", "evalharness", "prompts", "results", "tests")
MODULES = (
    "asyncio", "datasets", "gymnasium", "json", "numpy", "random", "sitecustomize", "torch", "transformers", "trl",
    "types", "usercustomize", "vllm", "yaml",
)  # fmt: skip
OF_A_REPOSITORY = (
    "agents", "base", "benchmarks", "cli", "clients", "config", "data", "docs", "envs", "judge", "models", "play",
    "prompts", "protocol", "results", "runs", "scripts", "tests", "tools", "training", "utils",
)  # fmt: skip
"""Packages at the top of other people's repositories. `PYTHONPATH=$PWD` puts them before everything installed."""
_SOURCE = """
import sys
with open({marks!r} + "/{name}", "a") as file:
    print(sys.orig_argv, file=file)
raise RuntimeError("this is the {name} of the current folder")
"""


@dataclass(frozen=True)
class HostileFolder:
    path: Path
    marks: Path

    def command(
        self, variables: Mapping[str, str], *arguments: object, python: Path = Path(sys.executable)
    ) -> subprocess.CompletedProcess[str]:
        """`evalharness ARGUMENTS` as a person starts it there; `python`: of the environment that it is installed in."""
        return subprocess.run(
            [python.with_name("evalharness"), *map(str, arguments)],
            cwd=self.path, env=dict(variables), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def executed(self) -> dict[str, str]:
        """What was run of it: name -> the command lines that did."""
        return {file.name: file.read_text() for file in self.marks.iterdir()}


def make_hostile_folder(folder: Path, *, without: tuple[str, ...] = ()) -> HostileFolder:
    work, marks = folder / "work", folder / "marks"
    marks.mkdir(parents=True)
    for name in (*PACKAGES, *MODULES):
        if name in without:
            continue
        _write(work / name / "__init__.py" if name in PACKAGES else work / f"{name}.py", marks, name)
    return HostileFolder(work, marks)


def make_foreign_repository(folder: Path, marks: Path) -> Path:
    """For PYTHONPATH. `evalharness_worlds` is the one module of ours at the top, which only trainers import."""
    for name in OF_A_REPOSITORY:
        _write(folder / name / "__init__.py", marks, name)
    _write(folder / "evalharness_worlds.py", marks, "evalharness_worlds")
    return folder


def before(repository: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with this folder first on PYTHONPATH."""
    parts = [str(repository), *variables.get("PYTHONPATH", "").split(os.pathsep)]
    return {**variables, "PYTHONPATH": os.pathsep.join(filter(None, parts))}


def _write(file: Path, marks: Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_SOURCE.format(marks=str(marks), name=name))
