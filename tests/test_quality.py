"""The whole tree is clean by the tools that contributors use."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)],
    ids=lambda c: " ".join(c),
)
def test_clean(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_import_goes_down_and_none_in_circles() -> None:
    """The table of rooms is in pyproject.toml; `lint-imports` shows the same."""
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_locks_name_versions_and_hashes_only() -> None:
    for lock in ROOT.glob("constraints*.txt"):
        for line in lock.read_text().splitlines():
            words = line.rstrip("\\").split()
            assert words[0].startswith("--hash=sha256:") or "==" in words[0], line


def test_ci_runs_the_command_of_the_readme() -> None:
    command = (ROOT / ".ci" / "run").read_text().splitlines()[-1]
    assert command in (ROOT / "README.md").read_text()
