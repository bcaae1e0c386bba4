"""Acting by tool calls: one tool, `act(command)`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from chat_server import ChatServer, completion
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_run

from evalharness.base.errors import UserError
from evalharness.config import RunConfig, make_config
from evalharness.envs import specs
from evalharness.models.resolve import prepare
from evalharness.protocol.react import FormatError
from evalharness.protocol.tools import TOOL, ToolCall, correction, parse_calls
from evalharness.records.store import read_episodes, read_manifest
from evalharness.results.behaviour.rows import difference_rows, load_behaviour
from evalharness.results.comparison import compare_runs
from evalharness.results.exports import openai_chat
from evalharness.results.exports.conversation import Protocol, conversation
from evalharness.results.leaderboard.leaderboards import require_one_table
from evalharness.results.leaderboard.standing_rows import Benchmark
from evalharness.results.scored_run import load_scored_run
from evalharness.runs.evaluation import evaluate

LEFT = ToolCall("c1", "act", '{"command": "turn left"}')


@pytest.mark.parametrize(
    ("text", "calls", "truncated", "action", "errors"),
    [
        ("I go.", (LEFT,), False, "turn left", ()),
        ("", (LEFT, LEFT), False, "turn left", (FormatError.SEVERAL_ACTIONS,)),
        ("Action: turn left", (), False, None, (FormatError.THOUGHT_ONLY,)),
        ("", (), False, None, (FormatError.EMPTY,)),
        ("", (ToolCall("c", "move", LEFT.arguments),), False, None, (FormatError.BAD_CALL,)),
        ("", (ToolCall("c", "act", "{"),), False, None, (FormatError.BAD_CALL,)),
        ("", (ToolCall("c", "act", "[1]"),), False, None, (FormatError.BAD_CALL,)),
        ("", (ToolCall("c", "act", '{"command": " "}'),), False, None, (FormatError.BAD_CALL,)),
        ("On and on", (), True, None, (FormatError.TRUNCATED,)),
        ("<think>on and on", (), True, None, (FormatError.REASONING_TRUNCATED,)),
        ("<think>x</think>", (), False, None, (FormatError.THOUGHT_ONLY,)),
    ],
)
def test_the_first_call_is_the_action(
    text: str,
    calls: tuple[ToolCall, ...],
    truncated: bool,
    action: str | None,
    errors: tuple[FormatError, ...],
) -> None:
    parsed = parse_calls(text, calls, truncated=truncated)
    assert (parsed.action, parsed.errors) == (action, errors)
    assert action is not None or "act" in correction(parsed)


@given(
    st.text(),
    st.lists(st.builds(ToolCall, st.text(), st.sampled_from(["act", "x"]), st.text())),
    st.booleans(),
)
def test_any_reply_parses(text: str, calls: list[ToolCall], truncated: bool) -> None:
    parsed = parse_calls(text, calls, truncated=truncated)
    assert parsed.action is not None or correction(parsed)


def calling(request: dict[str, Any]) -> dict[str, Any]:
    """Calls the tool; at its second turn it only speaks."""
    if len(request["messages"]) == 4:
        return completion("Action: turn left")
    answer = completion("I turn.")
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "act", "arguments": '{"command":"turn left"}'},
    }
    answer["choices"][0]["message"]["tool_calls"] = [call]
    answer["choices"][0]["finish_reason"] = "tool_calls"
    return answer


def options(server: ChatServer, folder: Path) -> RunConfig:
    return RunConfig.of(
        model=server.url, model_name="toy", suite="open", tasks="babyai:0", max_turns=3, output=folder,
        action_interface="tools",
    )  # fmt: skip


async def test_a_run_by_tool_calls(clean_home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    server = ChatServer(answer=calling)
    async with server.running():
        await asyncio.to_thread(evaluate, options(server, folder))
    assert all(request["tools"] == [TOOL] and "stop" not in request for request in server.requests)
    [episode] = read_episodes(folder)
    assert [turn.action for turn in episode.turns] == ["turn left", None, "turn left"]
    assert [turn.format_errors for turn in episode.turns] == [(), ("thought_only",), ()]
    assert episode.turns[0].calls == (ToolCall("c1", "act", '{"command":"turn left"}'),)
    first, second = server.requests[-1]["messages"], server.requests[-3]["messages"]
    assert first[: len(second)] == second  # only ever appended to
    head = first[1]["content"]
    assert 'act(command="' in head
    assert "Action:" not in head
    said, result, alone, told = first[2:6]
    assert said["tool_calls"][0]["function"] == {"name": "act", "arguments": '{"command": "turn left"}'}
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert result["content"] == episode.turns[0].observation
    assert (alone["content"], told["role"]) == ("Action: turn left", "user")
    assert "tool" in told["content"]
    manifest = read_manifest(folder)
    assert manifest.config.action_interface == "tools"
    protocol = Protocol.of(manifest)
    assert conversation(episode, protocol)[:6] == first
    assert json.loads(openai_chat.line(episode, protocol))["messages"][:6] == first


async def test_a_server_without_tools_is_refused_in_its_own_words(clean_home: Path, tmp_path: Path) -> None:
    server = ChatServer(choose_fault=lambda request: cs.status(400, "auto tool choice is off"))
    async with server.running():
        with pytest.raises(UserError, match="auto tool choice is off"):
            await asyncio.to_thread(evaluate, options(server, tmp_path / "run"))


def test_what_cannot_call_tools_is_refused(tmp_path: Path) -> None:
    from empty_checkpoint import make_empty_checkpoint

    with pytest.raises(UserError, match="oracle"):
        make_config({"model": "oracle", "action_interface": "tools"})
    config = make_config({"model": str(make_empty_checkpoint(tmp_path / "m")), "action_interface": "tools"})
    with pytest.raises(UserError, match="--tool-call-parser"):
        prepare(config.policy, {}, lambda text: None, agent=config.agent)


def test_runs_of_two_agents_are_compared_task_by_task_and_published_rows_stand_beside_react_alone(
    tmp_path: Path,
) -> None:
    runs = [
        load_scored_run(make_run(tmp_path / name, {"babyai": [(True, 1.0)]}, action_interface=name))
        for name in ("react", "tools")
    ]
    [comparison] = compare_runs(runs)
    assert [difference.family for difference in comparison.differences] == ["babyai", "babyai"]
    require_one_table(runs, None)
    difference_rows(*(load_behaviour(run.folder) for run in runs))
    tools = runs[1]
    with pytest.raises(UserError, match="agent tools"):
        require_one_table([tools], Benchmark.of(specs()))
