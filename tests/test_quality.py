"""The whole tree is clean by the tools that contributors use."""

import os
import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import grimp
import pytest

from evalharness import __version__
from evalharness.cli import make_parser
from evalharness.cli.reference import pages

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
    return {contract["name"]: contract for contract in contracts}


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-P", "-c", command],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_graph_of_rooms_is_small_and_has_no_circle() -> None:
    """A room is the second part of a module's name; an arrow leads from a room to another one that it imports."""
    graph = grimp.build_graph("evalharness", cache_dir=None)
    rooms: dict[str, set[str]] = {_room(module): set() for module in graph.modules}
    for module in graph.modules:
        rooms[_room(module)] |= {_room(other) for other in graph.find_modules_directly_imported_by(module)}
    arrows = {room: others - {room} for room, others in rooms.items()}
    assert len(arrows) <= 22
    assert sum(map(len, arrows.values())) <= 115
    TopologicalSorter(arrows).prepare()  # raises CycleError


def _room(module: str) -> str:
    return f"{module}.".split(".")[1]


@pytest.mark.slow
def test_a_room_that_is_missing_in_the_table_is_reported(tmp_path: Path) -> None:
    """In a tree with the names of ours and nothing in its modules."""
    sources = [path for room in ("evalharness", "envs") for path in (ROOT / room).rglob("*.py")]
    for source in sources:
        module = tmp_path / source.relative_to(ROOT)
        module.parent.mkdir(parents=True, exist_ok=True)
        module.touch()
    (tmp_path / "envs").rename(tmp_path / "evalharness" / "envs")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    clean = _lint(tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    (tmp_path / "evalharness" / "attic").mkdir()
    (tmp_path / "evalharness" / "attic" / "__init__.py").touch()
    found = _lint(tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    assert "attic" in found.stdout


def test_the_contracts_about_environments_name_every_room_and_every_environment() -> None:
    contracts = _contracts()
    rooms = {
        f"evalharness.{room.strip()}"
        for layer in contracts["Every import goes down"]["layers"]
        for room in re.split("[|:]", layer)
    }
    families = {f"evalharness.envs.{folder.parent.name}" for folder in (ROOT / "envs").glob("*/__init__.py")}
    by_name = contracts["The harness knows no environment by name"]
    assert set(by_name["source_modules"]) == rooms - {"evalharness.envs", "evalharness.clients"}
    assert set(by_name["forbidden_modules"]) == families
    few = contracts["What the harness knows of environments is in few modules"]
    known = {"__init__", "base", "task", "surface", "scene", "teaching", "picture"}
    beside = {path.stem for path in (ROOT / "envs").glob("*.py")} - known
    assert few["source_modules"] == by_name["source_modules"]
    assert set(few["forbidden_modules"]) == {f"evalharness.envs.{name}" for name in beside}
    ground = contracts["An environment knows the ground and nothing else of the harness"]
    above = rooms - {"evalharness.envs", "evalharness.base", "evalharness.clients"}
    assert (ground["source_modules"], set(ground["forbidden_modules"])) == (["evalharness.envs"], above)
    assert set(contracts["Environments do not know each other"]["modules"]) == families


def test_the_map_lists_the_rooms_in_the_order_of_the_table_of_imports() -> None:
    """The table in docs/architecture.md, from top to bottom, against the layers of import-linter."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    layers = _contracts()["Every import goes down"]["layers"]
    level = {room.strip(): number for number, layer in enumerate(layers) for room in re.split("[|:]", layer)}
    rows = [row.split("|")[1] for row in page.split("## The rooms")[1].splitlines() if row.startswith("| `")]
    rooms = [
        name.removesuffix("/").removesuffix(".py") for row in rows for name in re.findall("`(.+?)`", row)
    ]
    assert sorted(rooms) == sorted(level)
    assert [level[room] for room in rooms] == sorted(level[room] for room in rooms)


def test_the_folders_of_tests_are_the_rooms_of_the_package() -> None:
    """But for two that are about everything: damaged input, and faults."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    apart = {Path(), Path("damage"), Path("faults")}
    assert [folder for folder in folders - apart if not (ROOT / "evalharness" / folder).is_dir()] == []


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


def made(*targets: str) -> list[str]:
    """The commands that `make` would run; `make` alone runs its own."""
    command = ["make", "--no-print-directory", *(["-n"] if targets else []), *targets]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_ci_runs_the_test_command_of_the_readme() -> None:
    command = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert command == "make test"
    assert "    make test\n" in readme
    assert "    make demo\n" in readme


def test_make_installs_from_the_locks_and_gives_commands_that_there_are() -> None:
    targets = [line.split()[1] for line in made()]
    assert targets == ["demo", "test", "docs", "release"]
    commands = made("demo", "test")
    locks = {lock for line in commands for lock in re.findall("-r ([^ ]+)", line)}
    assert locks == {str(lock.relative_to(ROOT)) for lock in ROOT.glob("requirements/*.txt")}
    given = [line.split()[1:] for line in commands if line.startswith(".venv/bin/evalharness ")]
    assert len(given) == 3
    for words in given:
        make_parser().parse_args(words)


def test_pages_and_help_texts_keep_to_plain_words() -> None:
    written = [
        *ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"),
        *ROOT.glob("prompts/*.md"), *ROOT.glob("results/*/*.md"),
    ]  # fmt: skip
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(written)}
    assert len(texts) > 30
    texts["help texts"] = "\n".join(pages().values())
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if HARD_WORDS.search(line)
    ]
    assert found == []


def test_the_pages_have_at_most_40000_words() -> None:
    written = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")]
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in written) <= 40_000


def test_the_version_is_the_same_everywhere_and_has_its_entry_in_the_changelog() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{__version__}] - " in changelog
    released = changelog.split("\n## [")[1:]
    for entry in released:
        headings = re.findall("^### (.*)$", entry, re.MULTILINE)
        assert headings == sorted(set(headings)), "each of Added, Changed, Fixed once"
