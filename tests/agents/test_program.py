"""A changed program is another agent: every file that it is made of counts, and what is not looked at is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from evalharness.agents import program as programs
from evalharness.agents.program import Program, hash_command
from evalharness.agents.registry import load_agent
from evalharness.config import make_config
from evalharness.records.identity import changes

AGENT = "from evalharness.agents.react import ReactAgent\nclass Mine(ReactAgent):\n    name = 'mine'\n"


FILES = {
    "agent.py": "import json\nfrom helper import x\nimport lib.words",
    "helper.py": "def f():\n    import late\n    return late",
    "late.py": "1",
    "lib/words.py": "2",
    "lib/text.txt": "3",
    "other.py": "4",
    "pack/__init__.py": "",
    "pack/main.py": "5",
    "pack/deep/__init__.py": "",
    "pack/deep/code.py": "6",
    "settings.yaml": "7",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "edited", "is_another"),
    [
        ("python agent.py", "agent.py", True),
        ("python agent.py", "helper.py", True),
        ("python agent.py", "late.py", True),
        ("python agent.py", "lib/text.txt", True),
        ("python agent.py", "other.py", False),
        ("python agent.py", "run.log", False),
        ("python lib", "lib/text.txt", True),
        ("python pack/main.py", "pack/deep/code.py", True),
        ("python -m pack.main", "pack/deep/code.py", True),
        ("python agent.py --with=settings.yaml", "settings.yaml", True),
        ("./agent.py settings.yaml", "settings.yaml", True),
    ],
)
def test_every_file_of_a_command_counts(command: str, edited: str, is_another: bool, place: Path) -> None:
    before, program = hash_command(command.split())
    (place / edited).write_text("edited")
    after, _ = hash_command(command.split())
    assert (before != after) == is_another
    assert bool(program.find_edited()) == (is_another and edited.endswith(".py"))


def test_what_is_not_looked_at_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_FILES", 2)
    found, program = hash_command(["python", "-m", "elsewhere", "lib", "pack", "--model", "gpt"])
    assert list(found) == ["lib"]
    assert program.not_checked == ["python", "-m elsewhere", str(place / "pack")]


def test_the_agent_of_a_package_is_all_of_its_files(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "pack", raising=False)
    (place / "pack" / "main.py").write_text(AGENT)
    code = load_agent("pack.main:Mine").code
    assert code is not None
    assert {path.name for path in code.files} == {"__init__.py", "main.py", "code.py"}
    (place / "pack" / "deep" / "code.py").write_text("edited")
    assert Program.of(code.files).sha256 != code.sha256


def test_a_changed_program_is_refused_and_keeps_its_folder(place: Path) -> None:
    def identity(samples: int = 1) -> tuple[dict[str, Any], Path]:
        config = make_config(
            {
                "agent": "external",
                "agent_option": {"name": "mine"},
                "agent_command": "python agent.py --log out --memory memory.db",
                "samples": samples,
            }
        )
        return {"config": config.identity()}, config.folder()

    (place / "out").mkdir()
    first, folder = identity()
    assert first["config"]["agent"]["not_checked"] == ["python"]
    # What the program writes is no part of it.
    (place / "out" / "one.txt").write_text("a line")
    (place / "memory.db").write_text("x")
    assert changes(first, identity()[0]) == []
    (place / "helper.py").write_text("edited")
    [line] = changes(first, identity()[0])
    assert line.startswith("--agent.command_sha256.agent.py: ")
    assert identity()[1] == folder
    (place / "agent.py").unlink()
    [line] = changes(first, identity()[0])
    assert line.endswith("null now")
