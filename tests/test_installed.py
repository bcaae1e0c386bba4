"""What is installed: a wheel, a wheel made from the sdist, an editable install.

Each of them plays in a folder, and with a PYTHONPATH, that hold another project's `envs/`, `prompts/`, `tests/` and
`results/`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest
import throwaway
from hostile_folder import before, make_foreign_repository, make_hostile_folder
from made_once import made_once

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = {
    path.relative_to(ROOT / "envs").as_posix()
    for path in (ROOT / "envs").rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sdist, the wheel of the tree, and the wheel of the sdist."""

    def make(folder: Path) -> None:
        source = throwaway.build(folder / "sdist", "--sdist", ROOT)
        throwaway.build(folder / "wheel", "--wheel", ROOT)
        throwaway.build(folder / "wheel of the sdist", "--wheel", source)

    folder = made_once(tmp_path_factory, "built", make)
    return {
        kind.name: next(path for path in kind.iterdir() if path.name != ".gitignore")
        for kind in folder.iterdir()
    }


@pytest.mark.parametrize("kind", ["wheel", "wheel of the sdist"])
def test_a_wheel_holds_each_file_of_the_environments_once_and_below_our_own_name(
    built: dict[str, Path], kind: str
) -> None:
    names = zipfile.ZipFile(built[kind]).namelist()
    assert [name for name, times in Counter(names).items() if times > 1] == []
    tops = {re.sub(r"-.*(?=\.dist-info)", "", name.split("/")[0]) for name in names}
    assert tops == {"evalharness", "evalharness.dist-info", "evalharness_worlds.py"}
    inside = {
        name.removeprefix("evalharness/envs/") for name in names if name.startswith("evalharness/envs/")
    }
    assert inside == ENVIRONMENTS
    assert {Path(name).suffix for name in inside} >= {".json", ".pddl", ".py", ".yaml", ".z5"}
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


def test_an_sdist_holds_each_file_of_the_environments_once(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = [member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()]
    assert {name.removeprefix("envs/") for name in names if name.startswith("envs/")} == ENVIRONMENTS
    assert [name for name in names if name.startswith("evalharness/envs")] == []


@pytest.mark.parametrize("kind", ["wheel of the sdist", "editable"])
def test_what_is_installed_plays_beside_another_projects_packages(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    what = ("-e", str(ROOT)) if kind == "editable" else (str(request.getfixturevalue("built")[kind]),)
    python = throwaway.layered(tmp_path / "venv", Path(sys.executable), *what)
    here = make_hostile_folder(tmp_path / "here")
    own = {"EVALHARNESS_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    variables = before(make_foreign_repository(tmp_path / "repository", here.marks), {**os.environ, **own})

    tasks = here.command(variables, "show", "--tasks", python=python)
    assert "BabyAI" in tasks.stdout, tasks.stderr
    done = here.command(
        variables, "run", "--model", "oracle", "--suite", "open", "-o", "run",
        "--tasks", "alfworld:0,babyai:0-1,jericho:0,pddl:0", python=python,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = here.command(variables, "show", "run", "--json", "-", python=python)
    families = json.loads(shown.stdout)["families"]
    assert {name: found["success_rate"] for name, found in families.items()} == dict.fromkeys(
        ("alfworld", "babyai", "jericho", "pddl"), 1.0
    )
    code = (
        "import gymnasium; env = gymnasium.make('evalharness.envs:evalharness/BabyAI-v0'); "
        "import evalharness; print(evalharness.__file__)"
    )
    made = subprocess.run(
        [python, "-c", code],
        cwd=variables["PYTHONPATH"], env=variables, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(made.stdout.strip()).is_relative_to(ROOT if kind == "editable" else tmp_path / "venv")
    assert here.executed() == {}
