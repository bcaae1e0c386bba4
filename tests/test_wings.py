"""The core works without any of its wings: a copy without a wing's folder and entry points plays and shows its help,
also that of the command that docs/adding-a-command.md adds.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from evalharness.base.paths import checkout

WINGS = ("training", "rl", "judge", "paper", "protocols")
SCRIPT = """
import evalharness, sys
from evalharness.cli import main, make_parser
from evalharness.cli.parser import walk_commands
print(evalharness.__file__)
status = main(["run", "--model", "oracle", "--suite", "open", "--tasks", "pddl:0", "-o", sys.argv[1]])
status = status or main(["report", sys.argv[1], "-o", sys.argv[1] + "/page.html"])
status = status or main(["at-limit", sys.argv[1]])
for parser in walk_commands(make_parser()):
    print("help of", parser.prog, len(parser.format_help()) > 0)
sys.exit(status)
"""


def copy_without(wings: tuple[str, ...], folder: Path) -> None:
    """The package in `folder` as an installation has it, without these wings' folders and entry points."""
    source = checkout()
    gone = [f"evalharness.{wing}" for wing in wings]

    def left_out(path: str, names: list[str]) -> list[str]:
        is_top = Path(path) == source / "evalharness"
        return [name for name in names if name == "__pycache__" or (is_top and name in wings)]

    shutil.copytree(source / "evalharness", folder / "evalharness", ignore=left_out, symlinks=True)
    for name in ("envs", "prompts", "results"):
        (folder / name).symlink_to(source / name)
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    points = configparser.ConfigParser()
    points.optionxform = str  # type: ignore[assignment, method-assign]
    for group, named in project["entry-points"].items():
        kept = {
            name: value
            for name, value in named.items()
            if not any(f"{value}.".replace(":", ".").startswith(f"{wing}.") for wing in gone)
        }
        points[group] = kept
    points["evalharness.commands"]["at-limit"] = "at_limit"
    (folder / "at_limit.py").write_text(documented_command())
    metadata = folder / f"evalharness-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: evalharness\nVersion: {project['version']}\n")
    with (metadata / "entry_points.txt").open("w") as file:
        points.write(file)


def documented_command() -> str:
    page = (checkout() / "docs" / "adding-a-command.md").read_text()
    [code] = re.findall(r'((?:    .*\n|\n)*    """Count(?:.*\n|\n)*?)(?=Name the module)', page)
    return textwrap.dedent(code)


@pytest.mark.slow(60)
@pytest.mark.parametrize("wings", [*((wing,) for wing in WINGS), WINGS], ids="+".join)
def test_the_core_plays_and_shows_its_help_without(wings: tuple[str, ...], tmp_path: Path) -> None:
    copy_without(wings, tmp_path / "copy")
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT, str(tmp_path / "run")],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "copy"), "EVALHARNESS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == str(tmp_path / "copy" / "evalharness" / "__init__.py")
    assert "help of evalharness run True" in done.stdout
    assert (tmp_path / "run" / "page.html").exists()
    assert "\n0\n" in done.stdout, "no episode of the oracle ended at the turn limit"
    lost = {"training": "tune", "rl": "env", "judge": "judge", "paper": "paper"}
    for wing, command in lost.items():
        assert (f"help of evalharness {command} True" in done.stdout) == (wing not in wings)
