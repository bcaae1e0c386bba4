"""Other groups' protocols: what they stand for, their texts, their oddities, and what is refused."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from command_line import evalharness
from foreign_protocols import FIRST, verl_checkout

from evalharness.agents.agentgym import NoCallError, said_in_code, said_in_json
from evalharness.agents.base import Agent, EpisodeStart, Said
from evalharness.agents.guard import Guarded
from evalharness.agents.registry import agent_named
from evalharness.base.errors import UserError
from evalharness.checks.agents import PROMPT
from evalharness.cli import main
from evalharness.config import OPTIONS, RunConfig
from evalharness.envs.surface import ActionSurface
from evalharness.protocol.importer import import_texts, importable
from evalharness.protocol.published import DEFAULT, load_protocol, protocol_names
from evalharness.protocol.react import FormatError
from evalharness.protocol.texts import all_imported, imported_texts
from evalharness.records.format_trouble import Replies
from evalharness.records.store import read_episodes, read_manifest

MODEL = "http://127.0.0.1:9/v1"


def start(agent: Agent, **more: Any) -> Agent:
    known = {"goal": "reach it", "observation": "You are here.", **more}
    agent.start(
        EpisodeStart(
            "t", "rooms", "walk", known["goal"], known["observation"], 9, PROMPT, ActionSurface({"look": "look"}),
            known.get("valid_actions"),
        )
    )  # fmt: skip
    return agent


def read(name: str, text: str, **options: Any) -> tuple[str | None, tuple[str, ...]]:
    parsed = start(agent_named(name, options).make()).read(Said(text))
    assert parsed is not None
    return parsed.action, tuple(map(str, parsed.errors))


# Every protocol


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_stands_for_options_of_a_run(name: str) -> None:
    protocol = load_protocol(name)
    assert protocol.name == name
    config = RunConfig.of(model=MODEL, protocol=name)
    assert config.agent.chosen.name == protocol.agent
    assert config.agent.max_turns in (protocol.turns, None)
    if name != DEFAULT:
        assert "changed" not in config.identity()["protocol"]


def test_the_default_is_what_a_run_does_without_a_protocol() -> None:
    plain, named = RunConfig.of(model=MODEL), RunConfig.of(model=MODEL, protocol=DEFAULT)
    assert named.identity() == plain.identity()
    assert named.folder() == plain.folder()
    assert "protocol" not in plain.identity()
    for option, value in load_protocol(DEFAULT).run_options().items():
        if option in ("temperature", "max_tokens"):
            assert OPTIONS[option].default == value
    assert (load_protocol(DEFAULT).turns, load_protocol(DEFAULT).agent) == (30, "react")


def test_options_override_the_protocol_and_are_marked() -> None:
    config = RunConfig.of(
        model=MODEL, protocol="verl-agent", max_turns=8, temperature=0.0, agent_option={"history": "5"}
    )
    assert config.identity()["protocol"]["changed"] == {
        "max_turns": 50, "temperature": 0.4, "agent_option.history": 2
    }  # fmt: skip
    other = RunConfig.of(model=MODEL, protocol="verl-agent", agent="window", agent_option={"history": 1})
    assert other.agent.chosen.name == "window"
    assert other.identity()["protocol"]["changed"] == {"agent": "verl-agent"}
    again = RunConfig.of(**config.options())
    assert again.identity() == config.identity()


def test_protocol_and_wording_are_part_of_a_runs_identity_and_folder() -> None:
    plain, theirs, ours = (
        RunConfig.of(model=MODEL, **more)
        for more in ({}, {"protocol": "tales"}, {"protocol": "tales", "own_words": True})
    )
    assert len({str(config.folder()) for config in (plain, theirs, ours)}) == 3
    assert "tales" in theirs.folder().name
    assert (theirs.identity()["protocol"]["texts"], "texts" in ours.identity()["protocol"]) == (
        "tales",
        False,
    )
    assert ours.identity()["protocol"]["own_words"] is True


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
        ("name: x\ntitle: y\nagent: react\nturns: 0\n", "line 4, turns"),
        ("name: x\ntitle: y\nagent: react\nturns: 9\nturn: 3\n", "no such key"),
        ("name: ../x\ntitle: y\nagent: react\nturns: 9\n", "line 1, name"),
        ("name: x\ntitle: y\nagent: nobody\nturns: 9\n", "no such agent"),
        ("name: x\ntitle: y\nagent: react\nturns: 9\nscore: progress\ndraw: {games: 3}\n", "draw"),
        ("- 1\n", "mine.yaml is not usable"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(UserError, match=r"mine\.yaml|no such agent") as error:
        RunConfig.of(model=MODEL, protocol=str(file))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_protocol_is_named_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--model", MODEL, "--protocol", "verlagent"]) == 2
    assert "did you mean 'verl-agent'?" in capsys.readouterr().err
    assert main(["run", "--model", MODEL, "--own-words"]) == 2
    assert "--own-words goes with a --protocol" in capsys.readouterr().err
    assert main(["protocol", "show", "nothing.yaml"]) == 2
    assert "no such file" in capsys.readouterr().err


# Their texts


def test_texts_are_read_as_data_and_kept_with_hash_and_licence(clean_home: Path, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    checkout = verl_checkout(tmp_path / "theirs", more=f"open({str(trap)!r}, 'w').close()")
    brought = import_texts("verl-agent", checkout)
    assert not trap.exists()
    kept = all_imported("verl-agent")
    assert kept is not None
    assert imported_texts("verl-agent", "alfworld").texts["first"] == FIRST
    assert list(kept["sources"]) == ["agent_system/environments/prompts/alfworld.py"]
    assert (kept["licence"], (brought.path.parent / "LICENSE").read_text()) == (
        "Some License", "Some License\nAll of it."
    )  # fmt: skip
    brought.path.write_text(brought.path.read_text().replace("You are at", "Cheat at"))
    with pytest.raises(UserError, match="not as it was imported; import them"):
        imported_texts("verl-agent", "alfworld")


def test_without_them_an_error_names_the_command(
    clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"evalharness protocol import tales PATH.*--own-words"):
        imported_texts("tales", "alfworld")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ALFWORLD_TEMPLATE_NO_HIS = 3",
        b"ALFWORLD_TEMPLATE_NO_HIS = 'no slots'\nALFWORLD_TEMPLATE = 'none'",
        b"ALFWORLD_TEMPLATE_NO_HIS = f'{__import__(\"os\")}'\nALFWORLD_TEMPLATE = 'x'",
        b"ALFWORLD_TEMPLATE_NO_HIS = (" * 500,
        b"\xff\xfe\x00",
        b"x = " + b"[" * 200_000,
        b"A" * (2 << 20),
    ],
    ids=["empty", "number", "slots", "f-string", "open", "bytes", "deep", "large"],
)
def test_a_checkout_with_other_contents_is_refused(content: bytes, clean_home: Path, tmp_path: Path) -> None:
    checkout = verl_checkout(tmp_path / "theirs")
    (checkout / "agent_system" / "environments" / "prompts" / "alfworld.py").write_bytes(content)
    with pytest.raises(UserError, match="protocol import") as error:
        import_texts("verl-agent", checkout)
    assert len(str(error.value)) < 2000
    assert all_imported("verl-agent") is None


@pytest.mark.parametrize("name", sorted(importable()))
def test_a_folder_that_is_no_checkout_is_refused(
    name: str, clean_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protocol", "import", name, str(tmp_path)]) == 2
    assert f"give a checkout of {importable()[name].repository}" in capsys.readouterr().err
    assert main(["protocol", "import", name, str(tmp_path / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err


def test_a_protocol_without_texts_of_others_is_not_imported(
    clean_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["protocol", "import", "agentrefine", "."]) == 2
    assert "no texts to import" in capsys.readouterr().err


# Oddities of the originals


@pytest.mark.parametrize(
    ("reply", "action", "valid"),
    [
        ("<think>t</think><action> Go To Desk 1 </action>", "go to desk 1", True),
        ("<action>look</action>", "look", False),  # no thought
        ("I will go to the nearest desk, which is desk 1", "e nearest desk, which is desk 1"[-30:], False),
        ("<think>t</think></action><action>look", "", True),  # the other way round
        ("<think>\u6211</think><action>look</action>", "look", False),
        ("", "", False),
        ("<think>t</think><action>a</action><action>b</action>", "a", True),
    ],
)
def test_verl_agent_carries_out_what_it_calls_invalid(reply: str, action: str, valid: bool) -> None:
    assert read("verl-agent", reply) == (action, () if valid else ("protocol_invalid",))


def test_verl_agent_shows_what_was_read_and_never_what_was_said() -> None:
    agent = start(agent_named("verl-agent", {"history": 1}).make(), valid_actions=("look", "help"))
    agent.read(Said("<think>secret</think><action>LOOK</action>"))
    agent.observe("A room.", ("wait",))
    [message] = agent.request().messages
    assert "[Observation 1: 'You are here.', Action 1: 'look']" in message["content"]
    assert "secret" not in message["content"]
    assert "['wait']" in message["content"]


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Thought: hm\nAction: look\nObservation: x", "look"),
        ("look", "look"),
        ("'look'", "look"),
        ("The next action:\n\nlook", "look"),
        ("", ""),
        ("My action is to look", "look"),
    ],
)
def test_agentboard_reads_an_action_out_of_anything(reply: str, action: str) -> None:
    assert read("agentboard", reply) == (action, ())


def test_agentboard_drops_single_entries() -> None:
    agent = start(agent_named("agentboard").make())
    agent.read(Said("look"))
    agent.observe("A room.")
    assert agent.shorten() == 1
    content = agent.request().messages[-1]["content"]
    assert "You are here." not in content
    assert content.endswith("Action: look\nObservation: A room.\nAction: ")


def test_agentgym_takes_all_after_the_last_label() -> None:
    assert read("agentgym", "Action: a\nAction: look\nObservation: b") == ("look\nObservation: b", ())
    assert read("agentgym", "look") == ("", ())
    assert read("agentgym", "Action: look</s>") == ("loo", ())
    assert read("agentgym", "Action: [look], 1!", reading="line") == ("look, 1", ())
    assert read("agentgym", "Action: a\nAction: b", reading="line") == (None, ("several_actions",))


def test_tales_refuses_two_lines_and_forgets_its_thoughts() -> None:
    assert read("tales", "look\nwait") == (None, ("several_actions",))
    assert read("tales", " look ") == ("look", ())
    agent = start(agent_named("tales", {"think": True}).make())
    assert (agent.request().purpose, agent.read(Said("a plan"))) == ("think", None)
    assert "a plan" in str(agent.request().messages)
    assert agent.read(Said("look")) is not None
    agent.observe("A room.")
    assert "a plan" not in str(agent.request().messages)


# Runs


async def played(
    environment: dict[str, str], folder: Path, *options: object, says: str
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    async with ChatServer(answer=lambda request: says).running() as server:
        done = await asyncio.to_thread(
            evalharness, environment, "run", "--model", server.url, "--model-name", "toy", "--suite", "open",
            "--tasks", "compass:0-2", "--max-turns", 4, "-o", folder, *options,
        )  # fmt: skip
        return done, server.requests


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("verl-agent", "<think>t</think><action>turn right</action>"),
        ("agentboard", "Action: turn right"),
        ("agentgym", "Thought:\nt\n\nAction:\nturn right"),
        ("tales", "turn right"),
    ],
)
async def test_a_run_in_our_wording_is_verified_and_says_so(
    name: str, says: str, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    done, requests = await played(environment, folder, "--protocol", name, "--own-words", says=says)
    assert done.returncode == 0, done.stderr
    protocol = load_protocol(name)
    assert f"protocol {name} (our wording; max_turns=4, not {protocol.turns}" in " ".join(done.stdout.split())
    assert "the protocol's own number" in done.stdout
    assert ("128 games with repetition" in done.stdout) == (name == "verl-agent")
    assert requests[-1]["max_tokens"] == protocol.sampling.max_tokens
    assert requests[-1]["temperature"] == protocol.sampling.temperature
    assert read_manifest(folder).config.agent_name == protocol.agent
    assert {turn.action for episode in read_episodes(folder) for turn in episode.turns} == {"turn right"}
    checked = await asyncio.to_thread(evalharness, environment, "verify", folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page = tmp_path / "r.html"
    shown = await asyncio.to_thread(evalharness, environment, "report", folder, "-o", page)
    assert shown.returncode == 0, shown.stderr


async def test_best_of_n_samples_and_plays_greedily_under_a_protocol(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Sampling is what a protocol states, too: the greedy run and the samples each change it."""
    async with ChatServer(answer=lambda request: "turn right").running() as server:
        done = await asyncio.to_thread(
            evalharness, environment, "bon", "--model", server.url, "--protocol", "tales", "--own-words",
            "--suite", "open", "--tasks", "compass", "-n", 2, "--limit", 2, "--max-turns", 2, "-o", tmp_path / "bon",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    greedy, samples = (read_manifest(tmp_path / "bon" / name).config for name in ("greedy", "samples"))
    assert (greedy.temperature, samples.temperature, samples.samples) == (0.0, 1.0, 2)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "conversation_start_dict = {ActionFormat.REACT: (A(3), A(4))}",
        "conversation_start_dict = {ActionFormat.REACT: (A({'x': 1}), A({'value': 'a'}))}",
        "conversation_start_dict = {ActionFormat.REACT: (A(), A())}",
        "conversation_start_dict = {ActionFormat.REACT: (A({'value': f'{g(1)}'}), A({'value': 'a'}))}",
        "conversation_start = (A({'value': 'a'}), A({'value': open('x')}))",
        "valid_functions_args = {'go': 3}",
    ],
)
def test_a_damaged_checkout_of_agentgym_is_refused(content: str, clean_home: Path, tmp_path: Path) -> None:
    envs = tmp_path / "agentenv" / "agentenv" / "envs"
    envs.mkdir(parents=True)
    for name in ("alfworld", "babyai", "sciworld"):
        (envs / f"{name}.py").write_text(content)
    with pytest.raises(UserError, match="does not hold the prompt texts of agentgym"):
        import_texts("agentgym", tmp_path)


async def test_without_the_texts_a_run_is_refused_before_anything_is_asked(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done, requests = await played(environment, tmp_path / "run", "--protocol", "tales", says="look")
    assert done.returncode == 2
    assert "evalharness protocol import tales PATH" in done.stderr
    assert not requests


async def test_a_sweep_over_protocols_pairs_each_with_the_first(
    environment: dict[str, str], tmp_path: Path
) -> None:
    async with ChatServer(answer=lambda request: "Action: turn right").running() as server:
        common = (
            "sweep", "--model", server.url, "--model-name", "toy", "--over", "protocol=agentrefine,verl-agent,tales",
            "--own-words", "--suite", "open", "--tasks", "compass:0-2", "-o", tmp_path / "study",
        )  # fmt: skip
        done = await asyncio.to_thread(evalharness, environment, *common, "--max-turns", 3)
        refused = await asyncio.to_thread(evalharness, environment, *common)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "protocol tales (our wording" in shown
    assert "B against A" in shown
    assert refused.returncode == 2
    assert "--max-turns differs (agentrefine 30, verl-agent 50, tales 100)" in refused.stderr


def test_every_format_error_has_advice() -> None:
    """A run whose replies are all of one kind ends with a line about it, and not with a traceback."""
    for kind in FormatError:
        replies = Replies(9, errors=20, turns=20, causes=Counter({str(kind): 20}))
        assert replies.said().startswith("every one of 20 replies is a format error: ")


FUNCTIONS = {
    "goto": {"words": "go to", "joint": "", "arguments": ["place"], "parameters": {"place": True}},
    "use": {"words": "use", "joint": "on", "arguments": ["tool", "on"], "parameters": {"tool": True, "on": False}},
    "wait": {"words": "wait", "joint": "", "arguments": ["time"], "parameters": {"time": True}},
    "choose": {"words": "choose", "joint": "", "arguments": ["one"], "parameters": {"one": True}},
    "look": {"words": "look around", "joint": "", "arguments": [], "parameters": {}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("```python\n# I go\ngoto('hall')\n```", "go to hall"),
        ("goto(place='hall')", "go to hall"),
        ("use('axe')", "use axe"),
        ("use('axe', on='tree')", "use axe on tree"),
        ("wait('1')", "wait1"),
        ("choose(0)", "0"),
        ("look()", "look around"),
        ("look(1)", None),
        ("goto('hall', place='hall')", None),
        ("goto(*['hall'])", None),
        ("goto(**{'place': 'hall'})", None),
        ("goto('a' + 'b')", None),
        ("goto(look())", None),
        ("__import__('os').system('touch /tmp/never')", None),
        ("goto(open('/etc/passwd').read())", None),
        ("goto('hall'); look()", None),
        ("(lambda: 1)()", None),
        ("", None),
        ("goto(" + "-" * 9_000 + "1)", None),
        ("goto(" + "[" * 9_000, None),
        ("goto('" + "a" * 20_000 + "')", None),
        ("goto('\\d')", "go to \\d"),
        ("goto('\0')", None),
    ],
)  # fmt: skip
def test_python_of_a_model_is_read_and_never_run(code: str, action: str | None) -> None:
    try:
        assert said_in_code(code, FUNCTIONS)[1] == action
    except NoCallError:
        assert action is None


@pytest.mark.parametrize(
    ("call", "action"),
    [
        ({"thought": "t", "function_name": "use", "arguments": {"tool": "axe", "on": "tree"}}, "use axe on tree"),
        ({"thought": "t", "function_name": " goto ", "arguments": {"place": 3}}, "go to 3"),
        ({"thought": "t", "function_name": "goto", "arguments": {}}, "go to"),
        ({"thought": "t", "function_name": "goto", "arguments": {"a": 1, "place": 2}}, None),
        ({"thought": "t", "function_name": "goto", "arguments": ["hall"]}, None),
        ({"thought": "t", "function_name": "goto", "arguments": None}, None),
        ({"thought": "t", "function_name": ["goto"], "arguments": {}}, None),
        ({"thought": "t", "function_name": "fly", "arguments": {}}, None),
        ({"function_name": "look", "arguments": {}}, None),
    ],
)  # fmt: skip
def test_a_call_in_json_is_worded_or_refused(call: dict[str, Any], action: str | None) -> None:
    for text in (json.dumps(call), f"Here it is:\n```json\n{json.dumps(call)}\n```"):
        try:
            assert said_in_json(text, FUNCTIONS, strict=False)[1] == action
        except NoCallError:
            assert action is None
    with pytest.raises(NoCallError):
        said_in_json("{" * 100_000, FUNCTIONS, strict=True)


def test_a_format_whose_texts_are_not_there_is_named() -> None:
    agent = Guarded(agent_named("agentgym", {"format": "json"}).make())
    with pytest.raises(UserError, match="evalharness protocol import agentgym CHECKOUT"):
        agent.start(EpisodeStart("t", "rooms", "walk", "g", "o", 9, PROMPT, ActionSurface({})))
