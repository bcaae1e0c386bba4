"""Other groups' protocols against games recorded from their own code: equal to the letter."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.protocols.importer import import_texts
from evalharness.protocols.verl_agent import VerlAgent
from evalharness.suites.selection import family_tasks
from tests.conform.__main__ import main
from tests.conform.protocol_runs import conform_protocol
from tests.conform.protocol_transcripts import read_recording

SOURCES = {
    "agentboard": "AgentBoard",
    "agentgym": "AgentGym",
    "tales": "tale-suite",
    "verl-agent": "verl-agent",
}
COUNTS = {
    "agentboard": {"messages": 905, "action": 905, "reading": 250},
    "agentgym": {"messages": 690, "action": 690, "correction": 45, "reading": 1379},
    "tales": {"messages": 601, "action": 466, "correction": 37},
    "verl-agent": {"messages": 1212, "action": 1212, "validity": 1212},
}
pytestmark = pytest.mark.data


@pytest.fixture
def recorded(data_source: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The recorded games; the texts are imported as a user imports them."""
    folder = data_source / "protocols"
    if not folder.is_dir():
        pytest.skip(f"no recorded protocols at {folder}")
    monkeypatch.setenv("EVALHARNESS_DATA", str(tmp_path / "data"))
    for name, checkout in SOURCES.items():
        import_texts(name, folder / "sources" / checkout)
    import_texts("agentgym", _whole(folder, tmp_path / "agentgym"))
    return folder


def _whole(recorded: Path, target: Path) -> Path:
    """AgentGym's checkout with the one file that the sources at hand lack, made from the texts recorded of it."""
    shutil.copytree(recorded / "sources" / "AgentGym", target)
    texts = json.loads((recorded / "agentgym-conversation_start.json").read_text())
    [opening, _] = texts["alfworld"]["function_calling"]
    before, _, behind = opening["value"].partition('{\n  "type": "function"')
    words = before[before.index("You have") :]
    tail = behind[behind.index("\n\nIf you want") : behind.index("present.") + len("present.\n")]
    controller = target / "agentenv" / "agentenv" / "controller"
    controller.mkdir()
    (controller / "utils.py").write_text(
        f"INVOKING_FUNCTION_PROMPT = {tail!r}\ndef format_function_call_prompt(x):\n    prompt = {words!r}\n"
    )
    return target


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_messages_actions_and_validity_are_those_of_the_original(name: str, recorded: Path) -> None:
    result = conform_protocol(name, recorded, None)
    assert result.agent.mismatches == []
    assert {check: n for check, n in result.agent.compared.items() if n} == COUNTS[name]


def test_a_request_to_a_model_of_their_vllm_is_counted_with_its_template_and_the_added_sentence(
    recorded: Path, tmp_path: Path
) -> None:
    """The last request is one word too long for the context, so the original leaves the first entry out of it."""
    compared = 0
    for path in recorded.glob("agentboard_act-*.jsonl"):
        games = [row for row in map(json.loads, path.read_text().splitlines()) if "settings" in row]
        for game in (game for game in games if game["settings"]["llm_config"]["name"] == "vllm"):
            *_, last = game["steps"]
            words = len(last["call"]["full_prompt"].split())
            game["settings"]["forced_cut"] = True
            game["settings"]["llm_config"]["context_length"] = words - 1 + game["settings"]["llm_max_tokens"]
            before, first, after = last["prompt"].partition(f"Observation: {game['init_obs']}\n")
            assert first
            shorter = before + after
            last["call"]["full_prompt"] = last["call"]["full_prompt"].replace(last["prompt"], shorter)
            last["prompt"] = shorter
            compared += len(game["steps"])
        games = [game for game in games if game["settings"]["forced_cut"]]
        (tmp_path / path.name).write_text("".join(json.dumps(game) + "\n" for game in games))
    result = conform_protocol("agentboard", tmp_path, None)
    assert result.agent.mismatches == []
    assert result.agent.compared["messages"] > compared > 300


def test_games_whose_texts_were_not_in_the_checkout_are_left_out_and_counted(recorded: Path) -> None:
    import_texts("agentgym", recorded / "sources" / "AgentGym")
    result = conform_protocol("agentgym", recorded, None)
    assert result.agent.mismatches == []
    assert result.agent.compared["messages"] == 546
    assert {n for what, n in result.left_out.items() if what.startswith("format ")} == {369, 298}


WORLDS = {
    "agentgym": {"alfworld": (13, 199), "babyai": (10, 153), "sciworld": (14, 293)},
    "tales": {"alfworld": (7, 109), "jericho": (7, 185), "sciworld": (7, 133)},
    "verl-agent": {"alfworld": (27, 1005)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WORLDS))
def test_the_unwrapped_environments_answer_as_there(name: str, recorded: Path, published_data: Path) -> None:
    result = conform_protocol(name, recorded, published_data)
    assert result.ok, [w.mismatches()[:3] for w in result.worlds.values()]
    found = {
        family: (world.tallies["success"].equal, world.steps_matched)
        for family, world in result.worlds.items()
    }
    assert found == WORLDS[name]


@pytest.mark.slow
def test_the_admissible_actions_are_those_that_the_original_listed(
    recorded: Path, published_data: Path
) -> None:
    spec = specs()["alfworld"]
    tasks = {task.index: task for task in family_tasks(spec, "unwrapped", published_data, 0)}
    env, compared = spec.make(published_data), 0
    for game in read_recording("verl-agent", recorded).games:
        if game.replay is None:
            continue
        env.reset(options={"task": tasks[game.replay.index]})
        assert tuple(env.valid_actions()) == game.valid_actions
        for step in game.steps:
            env.step(step.action or "")
            assert tuple(env.valid_actions()) == step.valid_actions, game.source
            compared += 1
    assert compared == 1005


def test_the_command_says_what_differs(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = [str(recorded), "--protocol", "verl-agent", "--no-worlds"]
    assert main([*command, "--json", str(tmp_path / "a.json")]) == 0
    assert "1212/1212" in capsys.readouterr().out
    assert json.loads((tmp_path / "a.json").read_text())["ok"] is True
    monkeypatch.setattr(VerlAgent, "needs_valid_actions", False)
    assert main(command) == 1
    [recorded_text, ours, *_] = capsys.readouterr().out.partition("messages\n")[2].splitlines()
    assert "recorded: user: " in recorded_text
    assert "go to " in recorded_text
    assert "ours:     user: " in ours


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ("{}", "transcript of verl-agent"),
        ('{"steps": [1]}', "transcript"),
    ],
)
def test_damaged_recordings_are_refused(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "verl-agent-alfworld.jsonl").write_text(content + "\n")
    with pytest.raises(UserError, match=said):
        read_recording("verl-agent", tmp_path)


def test_a_folder_without_recordings_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--protocol", "verl-agnt"]) == 2
    assert "'verl-agent'?" in capsys.readouterr().err
    with pytest.raises(UserError, match="tales"):
        read_recording("tales", tmp_path)


def test_the_game_of_a_family_that_is_not_installed_is_named(tmp_path: Path) -> None:
    game = {
        "task": {"agentboard_id": 0}, "settings": {"max_steps": 1, "history_length": 2}, "task_description": "a goal",
        "init_obs": "a room", "init_admissible": [], "steps": [], "success": False,
    }  # fmt: skip
    games = [{"family": family, **game} for family in ("alfworld", "atari")]
    (tmp_path / "verl-agent-made.jsonl").write_text("".join(json.dumps(game) + "\n" for game in games))
    with pytest.raises(UserError, match=r"^verl-agent-made\.jsonl:2: unknown family 'atari'"):
        conform_protocol("verl-agent", tmp_path, None)
