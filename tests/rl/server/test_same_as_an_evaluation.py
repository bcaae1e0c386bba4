"""What a trainer's model reads is, letter by letter, what a model under evaluation reads; and so are the scores."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from chat_server import ChatServer
from command_line import evalharness, surroundings
from env_server import COMPASS, Talk, connect, serving

Message = dict[str, Any]

SCRIPTS = {
    "face north": ["Thought: a\nAction: turn right", "Action: turn right"],
    "face east": ["Action: turn left\nObservation: You face north.", "Action: turn right"],
    "face south": [
        "Let me see.",
        "Thought: I wait",
        "",
        "> Action: turn up",
        "Thought: several\nAction: turn right\nAction: turn right\nObservation: You face south.",
        "<think>which\nway?</think>\nThought: on\n**Action:** `turn right`",
    ],
}
"""Goal -> what is said, turn by turn, and again from the beginning."""


def answer(request: dict[str, Any]) -> str:
    """What a model says that follows the script of its task."""
    conversation = request["messages"]
    opening = next((m["content"] for m in conversation if "\nGoal: " in m["content"]), None)
    if opening is None:
        return "Yes."  # what a run asks a server before it begins
    goal = opening.rsplit("Goal: ", 1)[1].split("\n")[0]
    replies = sum(message["role"] == "assistant" for message in conversation)
    return SCRIPTS[goal][replies % len(SCRIPTS[goal])]


async def play(talk: Talk, index: int) -> tuple[list[Message], list[Message], list[float], dict[str, Any]]:
    """(what was last asked, the whole conversation, rewards, final state) of a client that follows the scripts."""
    turn = await talk.reset(index=index)
    conversation, asked, rewards = list(turn["observation"]["messages"]), list[Message](), list[float]()
    while not turn["done"]:
        asked = list(conversation)
        turn = await talk.step(answer({"messages": conversation}))
        rewards.append(turn["reward"])
        kept = {"role": "assistant", "content": turn["observation"]["kept"]}
        conversation += [kept, *turn["observation"]["messages"]]
    return asked, conversation, rewards, await talk.state()


@pytest.mark.slow
@pytest.mark.parametrize("thinking", ["strip", "keep"])
async def test_conversations_and_scores_are_those_of_a_run(tmp_path: Path, thinking: str) -> None:
    """`evalharness run` against a chat server that follows the scripts, and a client that does."""
    environment, run = surroundings(tmp_path), tmp_path / "run"
    options = ("--max-turns", 8)
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"history_thinking: {thinking}\n")
    async with ChatServer(answer).running() as server:
        model = ("--model", server.url, "--model-name", "toy", "--suite", "open", "--tasks", "compass:0-2")
        done = await asyncio.to_thread(
            evalharness, environment, "run", *model, *options, "--config", settings, "-o", run
        )
    assert done.returncode == 0, done.stderr
    sent = [request["messages"] for request in server.requests]
    episodes = {
        episode["task_id"]: episode
        for episode in map(json.loads, (run / "episodes.jsonl").read_text().splitlines())
    }
    with serving(
        environment, *COMPASS, *options, "--history-thinking", thinking, "--reward", "progress_gain"
    ) as found:
        async with ClientSession() as client:
            talk = await connect(client, found.url)
            played = [await play(talk, index) for index in range(3)]
            await talk.socket.close()
    assert [state["ended_by"] for *_, state in played] == ["success", "turn_limit", "success"]
    for index, (asked, conversation, rewards, state) in enumerate(played):
        episode = episodes[f"compass/open/{index:03d}"]
        assert asked in sent
        users = [message["content"] for message in conversation if message["role"] == "user"]
        assert users[1:] == [f"Observation: {turn['observation']}" for turn in episode["turns"]]
        for name in ("success", "solved", "progress", "ended_by"):
            assert state[name] == episode[name]
        assert state["step_count"] == len(episode["turns"])
        assert state["valid_actions"] == sum(turn["valid"] for turn in episode["turns"])
        assert sum(state["format_errors"].values()) == sum(len(t["format_errors"]) for t in episode["turns"])
        assert sum(rewards) == pytest.approx(episode["progress"])
