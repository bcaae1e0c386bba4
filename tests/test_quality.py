"""The whole tree is clean by the tools that contributors use."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from evalharness import __version__
from evalharness.cli import make_parser
from evalharness.cli.parser import walk_commands

ROOT = Path(__file__).parent.parent
HARD_WORDS = re.compile(
    r"\b(mend(s|ed|ing)?|sittings?|owed|told|of two minds|for the policy's sake)\b", re.IGNORECASE
)
"""For readers whose third language is English: fix, run, left to play or missing, said or reported."""


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        pytest.param(("mypy",), marks=pytest.mark.slow(100)),
    ],
    ids=lambda c: " ".join(c),
)
def test_clean(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_every_import_goes_down_and_none_in_circles() -> None:
    """The table of rooms is in pyproject.toml; `lint-imports` shows the same."""
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def _contracts() -> dict[str, Any]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {contract["name"].partition(":")[0]: contract for contract in contracts}


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-P", "-c", command],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_contracts_about_environments_name_every_room_and_every_environment() -> None:
    contracts = _contracts()
    rooms = {
        f"evalharness.{room.strip()}"
        for layer in contracts["Every import goes down"]["layers"]
        for room in re.split("[|:]", layer)
    }
    families = {f"evalharness.envs.{folder.parent.name}" for folder in (ROOT / "envs").glob("*/__init__.py")}
    by_name = contracts["The harness knows no environment by name"]
    assert set(by_name["source_modules"]) == rooms - {"evalharness.envs"}
    assert set(by_name["forbidden_modules"]) == families
    few = contracts["What the harness knows of environments is in few modules"]
    known = {"__init__", "base", "task", "surface"}
    beside = {path.stem for path in (ROOT / "envs").glob("*.py")} - known
    assert set(few["source_modules"]) == set(by_name["source_modules"]) - {"evalharness.paper"}
    assert set(few["forbidden_modules"]) == {f"evalharness.envs.{name}" for name in beside}
    ground = contracts["An environment knows the ground and nothing else of the harness"]
    above = rooms - {"evalharness.envs", "evalharness.base"}
    assert (ground["source_modules"], set(ground["forbidden_modules"])) == (["evalharness.envs"], above)
    beside_a_trainer = set(contracts["Clients import nothing of the harness"]["forbidden_modules"])
    assert rooms - beside_a_trainer == {"evalharness.rl"}
    assert set(contracts["Environments do not know each other"]["modules"]) == families


def test_every_module_that_the_map_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", page) + re.findall(
        r"^    ([a-z]+/[a-z_]*) ", page, re.M
    )
    assert len(named) > 30
    package = ROOT / "evalharness"
    bases = (ROOT, package, ROOT / "envs", *(room for room in package.iterdir() if room.is_dir()))
    missing = [
        name
        for name in named
        if not any((base / name).exists() or (base / f"{name}.py").exists() for base in bases)
    ]
    assert missing == []


def test_locks_name_versions_and_hashes_only() -> None:
    for lock in ROOT.glob("requirements/*.txt"):
        for line in lock.read_text().splitlines():
            words = line.rstrip("\\").split()
            assert words[0].startswith("--hash=sha256:") or "==" in words[0], line


def test_the_lock_to_use_has_all_that_a_run_and_its_plots_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["plots"]]
    lock = (ROOT / "requirements" / "run.txt").read_text()
    pinned = {line.partition("==")[0] for line in lock.splitlines() if "==" in line}
    assert [each for each in wanted if re.split("[<>=]", each)[0] not in pinned] == []


def test_pages_and_help_texts_keep_to_plain_words() -> None:
    written = [
        *ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"),
        *ROOT.glob("prompts/*.md"), *ROOT.glob("results/*/*.md"),
    ]  # fmt: skip
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(written)}
    assert len(texts) > 30
    texts["help texts"] = "\n".join(parser.format_help() for parser in walk_commands(make_parser()))
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if HARD_WORDS.search(line)
    ]
    assert found == []


def test_the_version_is_the_same_everywhere_and_has_its_entry_in_the_changelog() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{__version__}] - " in changelog
    released = changelog.split("\n## [")[1:]
    for entry in released:
        headings = re.findall("^### (.*)$", entry, re.MULTILINE)
        assert headings == sorted(set(headings)), "each of Added, Changed, Fixed once"
