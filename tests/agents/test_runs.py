"""Runs of agents: what is sent, kept, verified and shown; and agents of the user's own, good and bad."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness

from evalharness.records.store import read_manifest

SAYS = "Thought: t\n<think>t</think><action>turn right</action>\nAction: turn right"
OWN = '''
from evalharness.agents.base import AgentOptions
from evalharness.agents.react import ReactAgent

class Options(AgentOptions):
    word: str = "please"
    """said at the end of every request"""

class Polite(ReactAgent):
    """Says a word at the end of every request."""
    name = "polite"
    appends = False
    Options = Options

    def request(self):
        request = super().request()
        *before, last = request.messages
        {body}
        said = last["content"] + " " + self.options.word
        return type(request)([*before, {**last, "content": said}], stop=request.stop)
'''


async def played(
    environment: dict[str, str], folder: Path, *options: object, says: str = SAYS
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    async with ChatServer(answer=lambda request: says).running() as server:
        done = await asyncio.to_thread(
            evalharness, environment, "run", "--model", server.url, "--suite", "open", "--tasks", "compass:0-2",
            "--max-turns", 4, "-o", folder, *options,
        )  # fmt: skip
        return done, server.requests


@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("act", ()),
        ("window", ("history=1", "list_actions=true")),
    ],
)
async def test_a_run_of_an_agent_is_verified_and_shown(
    agent: str, options: tuple[str, ...], environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    chosen = [word for option in options for word in ("--agent-option", option)]
    done, _ = await played(environment, folder, "--model-name", "toy", "--agent", agent, *chosen)
    assert done.returncode == 0, done.stderr
    assert f"agent {agent}" in done.stdout
    assert read_manifest(folder).config.agent_name == agent
    checked = await asyncio.to_thread(evalharness, environment, "verify", folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    shown = await asyncio.to_thread(evalharness, environment, "report", folder, "-o", tmp_path / "r.html")
    assert shown.returncode == 0, shown.stderr


async def test_a_changed_message_hash_is_found(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    await played(environment, folder, "--model-name", "toy", "--agent", "window")
    path = folder / "episodes.jsonl"
    first, *rest = path.read_text().splitlines()
    line = json.loads(first)
    line["turns"][0]["sent"] = "0" * 16
    path.write_text("\n".join([json.dumps(line), *rest]) + "\n")
    checked = await asyncio.to_thread(evalharness, environment, "verify", folder)
    assert checked.returncode == 1
    assert "messages" in checked.stdout


async def test_two_agents_of_one_model_are_two_runs_and_one_paired_table(
    environment: dict[str, str], tmp_path: Path
) -> None:
    for agent in ("react", "window"):
        done, _ = await played(environment, tmp_path / agent, "--model-name", "toy", "--agent", agent)
        assert done.returncode == 0, done.stderr
    again, _ = await played(environment, tmp_path / "react", "--model-name", "toy", "--agent", "window")
    assert again.returncode == 2
    assert str(tmp_path / "react") in again.stderr
    compared = await asyncio.to_thread(
        evalharness, environment, "compare", tmp_path / "react", tmp_path / "window"
    )
    assert compared.returncode == 0, compared.stderr
    assert "window" in compared.stdout


async def test_an_agent_of_ones_own_from_a_file(environment: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "polite.py"
    own.write_text(OWN.replace("{body}", ""))
    options = ("--agent", f"{own}:Polite", "--agent-option", "word=now")
    done, requests = await played(environment, tmp_path / "run", "--model-name", "toy", *options)
    assert done.returncode == 0, done.stderr
    assert any(request["messages"][-1]["content"].endswith(" now") for request in requests)
    agent = read_manifest(tmp_path / "run").config.agent
    assert agent is not None
    assert (agent.name, agent.options) == ("polite", {"word": "now"})
    assert agent.code_sha256
    # Another code is another agent, and nobody runs a file because a record names it.
    own.write_text(OWN.replace("{body}", "pass"))
    done, _ = await played(environment, tmp_path / "run", "--model-name", "toy", *options)
    assert done.returncode == 2
    assert "code_sha256" in done.stderr
    checked = await asyncio.to_thread(evalharness, environment, "verify", tmp_path / "run")
    assert checked.returncode == 0, checked.stdout
    assert "agent polite" in checked.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('out of ideas')", "agent polite, compass/open/"),
        ("return type(request)([])", "no message"),
        ("return None", "request() returned NoneType, not Request"),
        ("return type(request)([{'role': 'wizard', 'content': 'x'}])", "no role"),
        ("return type(request)([{'role': 'user', 'content': 'x' * 20_000_000}])", "characters"),
        ("self.options = Options(word='other')", "options"),
    ],
)
async def test_an_agent_that_is_wrong_ends_the_run_and_is_no_fault_of_the_model(
    body: str, said: str, environment: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "polite.py"
    own.write_text(OWN.replace("{body}", body))
    done, _ = await played(environment, tmp_path / "run", "--model-name", "toy", "--agent", f"{own}:Polite")
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


async def test_an_agent_that_never_reads_an_action_is_stopped(
    environment: dict[str, str], tmp_path: Path
) -> None:
    own = tmp_path / "polite.py"
    own.write_text(OWN.replace("{body}", "pass") + "\n    def read(self, said):\n        return None\n")
    done, _ = await played(environment, tmp_path / "run", "--model-name", "toy", "--agent", f"{own}:Polite")
    assert done.returncode == 2
    assert "16 times" in done.stderr
