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
from env_server import COMPASS, connect, serving

SCRIPTS = {
    "plain": ["Thought: a\nAction: turn right", "Action: turn right"],
    "careless": [
        "Let me see.",
        "Thought: I wait",
        "Thought: several\nAction: turn right\nAction: turn right\nObservation: You face south.",
        "<think>which\nway?</think>\nThought: on\n**Action:** `turn right`",
        "",
        "Action: turn up",
    ],
    "long": ["Action: turn left\nObservation: You face north."] * 9,
}


@pytest.mark.parametrize("thinking", ["strip", "keep"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
async def test_the_conversation_and_the_scores_are_those_of_a_run(
    tmp_path: Path, script: list[str], thinking: str
) -> None:
    """`evalharness run` against a chat server that says the script, and the same script said by a client."""
    if thinking == "keep" and script is not SCRIPTS["careless"]:
        pytest.skip("only one of them thinks")
    environment = surroundings(tmp_path)

    def answer(request: dict[str, Any]) -> str:
        replies = sum(message["role"] == "assistant" for message in request["messages"])
        return script[replies % len(script)]

    options = ("--max-turns", 8, "--history-thinking", thinking)
    run = tmp_path / "run"
    async with ChatServer(answer).running() as server:
        model = ("--model", server.url, "--model-name", "toy", "--suite", "open", "--tasks", "compass:2")
        done = await asyncio.to_thread(evalharness, environment, "run", *model, *options, "-o", run)
    assert done.returncode == 0, done.stderr
    sent = max((request["messages"] for request in server.requests), key=len)
    (episode,) = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]

    asked: list[dict[str, Any]] = []
    with serving(environment, *COMPASS, *options, "--reward", "progress_gain") as found:
        async with ClientSession() as client:
            talk = await connect(client, found.url)
            turn = await talk.reset(index=2)
            conversation, rewards = list(turn["observation"]["messages"]), list[float]()
            while not turn["done"]:
                asked = list(conversation)
                turn = await talk.step(script[len(rewards) % len(script)])
                rewards.append(turn["reward"])
                kept = {"role": "assistant", "content": turn["observation"]["kept"]}
                conversation += [kept, *turn["observation"]["messages"]]
            state = await talk.state()
    assert asked == sent
    assert [message["content"] for message in conversation if message["role"] == "user"][1:] == [
        f"Observation: {turn['observation']}" for turn in episode["turns"]
    ]
    for name in ("success", "solved", "progress", "ended_by"):
        assert state[name] == episode[name]
    assert state["step_count"] == len(episode["turns"])
    assert state["valid_actions"] == sum(turn["valid"] for turn in episode["turns"])
    assert sum(rewards) == pytest.approx(episode["progress"])
