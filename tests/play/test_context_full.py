"""A conversation that outgrows the model's context loses old turns; what has to stay ends the episode, not the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chat_server as cs
import pytest
from against_server import evaluated
from chat_server import ChatServer, completion

from evalharness.cli import main
from evalharness.records.store import read_episodes
from evalharness.results.behaviour.rows import behaviour_rows, load_behaviour
from evalharness.results.deviations import deviations
from evalharness.results.scored_run import load_scored_run
from evalharness.runs.evaluation import RunOutcome

TOO_LONG = cs.status(400, "maximum context length is exceeded")


async def played(server: ChatServer, folder: Path, tasks: str = "babyai:0-1", **options: Any) -> RunOutcome:
    async with server.running():
        return await evaluated(server, folder, tasks=tasks, concurrency=1, **options)


async def test_a_head_that_does_not_fit_ends_that_episode_alone(clean_home: Path, tmp_path: Path) -> None:
    first: list[str] = []

    def too_long(request: dict[str, Any]) -> cs.Fault | None:
        text = request["messages"][-1]["content"]
        if len(request["messages"]) == 2 and text != "Say ok.":
            first.append(text)
        return TOO_LONG if first and text == first[0] else None

    outcome = await played(ChatServer(choose_fault=too_long), tmp_path / "run", max_turns=2)
    assert outcome.exit_status == 0
    ends = {
        episode.task_id: (episode.ended_by, len(episode.turns)) for episode in read_episodes(tmp_path / "run")
    }
    assert sorted(ends.values()) == [("context_full", 0), ("turn_limit", 2)]
    assert outcome.summary.context_full_episodes == 1


async def test_the_newest_observation_stays_to_the_end(clean_home: Path, tmp_path: Path) -> None:
    """At most five messages fit, then four: with one turn behind it the newest observation cannot be dropped."""
    limits = [5, 5, 5, 5, 3]
    seen: list[list[dict[str, str]]] = []

    def too_long(request: dict[str, Any]) -> cs.Fault | None:
        seen.append(request["messages"])
        return TOO_LONG if len(request["messages"]) > limits[min(len(seen) // 2, 4)] else None

    await played(ChatServer(choose_fault=too_long), tmp_path / "run", tasks="babyai:0", max_turns=9)
    [episode] = read_episodes(tmp_path / "run")
    assert episode.ended_by == "context_full"
    assert episode.turns
    assert all(messages[-1]["content"].startswith("Observation:") for messages in seen if len(messages) > 2)
    newest = f"Observation: {episode.turns[-1].observation}"
    assert seen[-1][-1]["content"] == newest
    assert len(seen[-1]) == 4


@pytest.mark.parametrize(
    ("fault", "is_full"),
    [
        (cs.body("<html>", status=413), True),
        (cs.status(400, "Please send less."), True),
        (cs.status(400, "Invalid schema: field 'context' has the wrong length in a window"), False),
    ],
)
async def test_in_whatever_words_a_server_says_that_the_context_is_full_old_turns_go(
    clean_home: Path, tmp_path: Path, fault: cs.Fault, is_full: bool
) -> None:
    def choose(request: dict[str, Any]) -> cs.Fault | None:
        replies = sum(message["role"] == "assistant" for message in request["messages"])
        return fault if len(server.requests) > 7 and replies > 4 else None

    server = ChatServer(choose_fault=choose)
    outcome = await played(server, tmp_path / "run", tasks="babyai:0", max_turns=9)
    assert outcome.exit_status == (0 if is_full else 3)
    assert outcome.summary.trimmed_episodes == is_full


@pytest.mark.parametrize("status", [200, 400])
async def test_a_reply_that_the_servers_filter_withholds_ends_the_episode_and_is_counted(
    clean_home: Path, tmp_path: Path, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    withheld = {"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]}
    fault = cs.body(
        json.dumps(withheld if status == 200 else {"error": {"code": "content_filter"}}), status=status
    )
    server = ChatServer(choose_fault=lambda request: fault if len(request["messages"]) > 4 else None)
    outcome = await played(server, tmp_path / "run", tasks="babyai:0", max_turns=6)
    assert (outcome.exit_status, outcome.summary.content_filter_episodes) == (0, 1)
    [episode] = read_episodes(tmp_path / "run")
    assert (episode.ended_by, len(episode.turns), episode.format_error_turns) == ("content_filter", 2, 0)
    assert len(server.requests) == 4
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "content filter" in capsys.readouterr().out


@pytest.mark.parametrize(("agent", "cut_from"), [("react", 5), ("window", None)])
async def test_a_server_that_drops_the_beginning_without_a_word_is_named_and_its_scores_are_marked(
    clean_home: Path, tmp_path: Path, agent: str, cut_from: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt of a chat that only grows had no more tokens; an agent that sends a window has such prompts anyway."""
    server = ChatServer(usage=lambda request: {"prompt_tokens": min(2 * len(request["messages"]), 16)})
    outcome = await played(server, tmp_path / "run", tasks="babyai:0", max_turns=6, agent=agent)
    assert outcome.summary.cut_from == cut_from
    assert [row.cut_episodes for row in outcome.summary.families.values()] == [1 if cut_from else 0]
    run = load_scored_run(tmp_path / "run")
    [start] = run.manifest.sessions
    assert main(["show", str(tmp_path / "run")]) == 0
    for text in (capsys.readouterr().out, " ".join(start.noticed)):
        assert ("dropped the beginning" in text, "num_ctx" in text) == (bool(cut_from),) * 2
    marks = deviations(run.identity, {}, {}, run.scores)
    assert any("dropped" in mark for mark in marks) == bool(cut_from)


async def test_the_prompt_names_the_limit_of_the_run(clean_home: Path, tmp_path: Path) -> None:
    server = ChatServer()
    await played(server, tmp_path / "run", tasks="alfworld:0", max_turns=7)
    text = server.requests[-1]["messages"][1]["content"]
    assert "within 7 actions" in text
    assert "max_turns" not in text


async def test_a_server_that_does_not_say_what_stopped_a_reply_has_no_rate_of_invented_observations(
    clean_home: Path, tmp_path: Path
) -> None:
    def silent(request: dict[str, Any]) -> dict[str, Any]:
        answer = completion("Thought: t\nAction: turn left")
        del answer["choices"][0]["stop_reason"]
        return answer

    names = []
    for name, server in (("told", ChatServer()), ("untold", ChatServer(answer=silent))):
        outcome = await played(server, tmp_path / name, tasks="babyai:0", max_turns=2)
        assert outcome.summary.tells_stop is (name == "told")
        names.append({row.figure for row in behaviour_rows(load_behaviour(tmp_path / name))})
    assert names[0] - names[1] == {"format_error_rate_invented_observation"}
