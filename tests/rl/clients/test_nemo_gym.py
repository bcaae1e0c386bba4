"""NeMo Gym's own agent and model server play our tasks with the lines of the page."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import throwaway
from chat_server import ChatServer, completion
from command_line import surroundings
from env_server import COMPASS, serving

from tests.rl.clients.test_trainers import PAGES, carry_out, lines_of

WHOLE = {
    **completion("Thought: that way\nAction: turn right"),
    "id": "chat-1",
    "created": 1,
    "model": "toy",
    "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
}
"""NeMo Gym wants all fields of OpenAI's answer."""
PROGRAM = Path(__file__).with_name("nemo_gym_rollouts.py")


@pytest.mark.slow
async def test_its_gymnasium_agent_gets_our_prompt_and_reward(tmp_path: Path) -> None:
    python = throwaway.nemo_gym(tmp_path / "venv", "websockets", "pyyaml")
    page = (PAGES / "nemo-gym.md").read_text()
    (config,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    around = surroundings(tmp_path)
    with serving(around, *COMPASS, "--max-turns", 2) as server:
        async with ChatServer(lambda _: WHOLE).running() as model:
            (tmp_path / "evalharness.yaml").write_text(config.replace("http://127.0.0.1:8000", server.url))
            lines_written = lines_of("nemo-gym", URL=server.url)
            assert await asyncio.to_thread(carry_out, python, lines_written, tmp_path) == []
            rows = (tmp_path / "train.jsonl").read_text().splitlines()
            assert len(rows) == 20
            (tmp_path / "some.jsonl").write_text("\n".join(rows[:8]))
            arguments = ["evalharness.yaml", "some.jsonl", "rollouts.jsonl", model.url]
            code = f"import sys\nsys.argv[1:] = {arguments!r}\n" + PROGRAM.read_text().replace(
                "from __future__ import annotations\n", ""
            )
            said = await asyncio.to_thread(carry_out, python, code, tmp_path)
    played = [json.loads(line) for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()]
    played.sort(key=lambda each: each["info"]["task_id"])
    assert [each["info"]["task_id"] for each in played] == [f"compass/open-0/00{n}" for n in range(8)]
    assert [each["reward"] for each in played] == [float(each["info"]["success"]) for each in played]
    assert {each["reward"] for each in played} == {0.0, 1.0}
    assert [each["terminated"] for each in played] == [each["info"]["success"] for each in played]
    assert [each["truncated"] for each in played] == [not each["info"]["success"] for each in played]
    second = (request["messages"] for request in model.requests if len(request["messages"]) == 4)
    asked = next(messages for messages in second if "\nGoal: face north" in str(messages[1]["content"]))
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "user"]
    assert asked[0]["content"] == "You are a navigator."
    assert "Observation: You face west." in str(asked[3]["content"])
    assert tuple(said[-2:]) == ("{'supports_explicit_close': True} 1", "0")
