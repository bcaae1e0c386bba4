"""The whole tree is clean by the tools that contributors use."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from evalharness import __version__
from evalharness.cli.reference import page

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
        pytest.param(("mypy",), marks=pytest.mark.slow),
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
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_map_lists_the_rooms_in_the_order_of_the_table_of_imports() -> None:
    """The table in docs/architecture.md, from top to bottom, against the layers of import-linter."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    level = {
        room.strip().removeprefix("evalharness."): number
        for number, layer in enumerate(layers)
        for room in re.split("[|:]", layer)
    }
    rows = [row.split("|")[1] for row in page.split("## The rooms")[1].splitlines() if row.startswith("| `")]
    rooms = [
        name.removesuffix("/").removesuffix(".py") for row in rows for name in re.findall("`(.+?)`", row)
    ]
    assert sorted([*rooms, "_version"]) == sorted(level)
    assert [level[room] for room in rooms] == sorted(level[room] for room in rooms)


def test_every_module_that_the_map_names_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`", page) + re.findall(
        r"^    ([a-z]+/[a-z_]*) ", page, re.M
    )
    assert len(named) > 30
    bases = (ROOT, ROOT / "evalharness", ROOT / "envs")
    missing = [
        name
        for name in named
        if not any((base / name).exists() or (base / f"{name}.py").exists() for base in bases)
    ]
    assert missing == []


def test_locks_name_versions_and_hashes_only() -> None:
    for lock in ROOT.glob("constraints*.txt"):
        for line in lock.read_text().splitlines():
            words = line.rstrip("\\").split()
            assert words[0].startswith("--hash=sha256:") or "==" in words[0], line


def test_ci_runs_the_command_of_the_readme() -> None:
    command = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    assert command in (ROOT / "README.md").read_text()


def test_pages_and_help_texts_keep_to_plain_words() -> None:
    pages = [
        *ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/environments/*.md"),
        *ROOT.glob("prompts/*.md"), *ROOT.glob("results/*/*.md"),
    ]  # fmt: skip
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(pages)}
    assert len(texts) > 30
    texts["help texts"] = page()
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
