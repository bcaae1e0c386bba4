"""The worked example of docs/agents.md."""

from __future__ import annotations

import re
from pathlib import Path

from agent_contract import check_agent
from command_line import evalharness

from evalharness.agents.registry import OURS, load_agent

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


def test_the_page_has_every_agent() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(OURS)


def test_the_example_keeps_the_contract_and_is_listed(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text(
        re.findall(r'^```python title="short.py"\n(.*?)^```', PAGE, re.S | re.M)[0]
    )
    check_agent(load_agent(f"{tmp_path / 'short.py'}:ShortMemory").kind)
    done = evalharness(environment, "data", "agents", f"{tmp_path / 'short.py'}:ShortMemory")
    assert done.returncode == 0, done.stderr
    assert "turns=3:" in " ".join(done.stdout.split())
