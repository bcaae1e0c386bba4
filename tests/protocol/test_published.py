"""A protocol's file: what it stands for, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.config import OPTIONS, RunConfig
from evalharness.protocol.published import DEFAULT, load_protocol

MODEL = "http://127.0.0.1:9/v1"


def test_the_default_is_what_a_run_does_without_a_protocol() -> None:
    plain, named = RunConfig.of(model=MODEL), RunConfig.of(model=MODEL, protocol=DEFAULT)
    assert named.identity() == plain.identity()
    assert named.folder() == plain.folder()
    assert "protocol" not in plain.identity()
    for option, value in load_protocol(DEFAULT).run_options().items():
        if option in ("temperature", "max_tokens"):
            assert OPTIONS[option].default == value
    assert (load_protocol(DEFAULT).turns, load_protocol(DEFAULT).agent) == (30, "react")


def test_a_protocol_of_ones_own_is_known_by_its_content(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ntitle: x\nagent: window\noptions: {history: 3}\nturns: 7\n")
    config = RunConfig.of(model=MODEL, protocol=str(file))
    assert (config.agent.max_turns, config.agent.chosen.options.model_dump()["history"]) == (7, 3)
    first = config.identity()
    file.write_text(file.read_text() + "averaging: other\n")
    assert RunConfig.of(model=MODEL, protocol=str(file)).identity() != first
    assert str(tmp_path) not in json.dumps(first)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("name: x\ntitle: y\n", "agent: is missing"),
        ("name: [", "line 1"),
        ("name: x\ntitle: y\nagent: react\nturns: 0\n", "turns"),
        ("name: x\ntitle: y\nagent: react\nturns: 9\nturn: 3\n", "turn: "),
        ("name: ../x\ntitle: y\nagent: react\nturns: 9\n", "name"),
        ("name: x\ntitle: y\nagent: nobody\nturns: 9\n", "agent"),
        ("name: x\ntitle: y\nagent: react\nturns: 9\nscore: progress\ndraw: {games: 3}\n", "draw"),
        ("- 1\n", "mine.yaml"),
        ("name: x\ntitle: y\nagent: react\nturns: 9\ntasks: '@list.txt'\n", "tasks: "),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(UserError, match=r"mine\.yaml|no such agent") as error:
        RunConfig.of(model=MODEL, protocol=str(file))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_code_of_a_protocols_agent_is_loaded_only_if_it_is_typed(tmp_path: Path) -> None:
    file, agent = tmp_path / "mine.yaml", f"{tmp_path}/agent.py:Own"
    file.write_text(f"name: mine\ntitle: x\nagent: {agent}\nturns: 7\n")
    (tmp_path / "agent.py").write_text(
        "from evalharness.agents.react import ReactAgent\nclass Own(ReactAgent):\n    name = 'own'\n"
    )
    with pytest.raises(UserError, match=f"type --agent {agent}"):
        RunConfig.of(model=MODEL, protocol=str(file))
    config = RunConfig.of(model=MODEL, protocol=str(file), agent=agent)
    assert (config.agent.chosen.name, "changed" in config.identity()["protocol"]) == ("own", False)
