"""A program: NeMo Gym's own agent and model server, and our resources server, each on a port of its own, play rows.

    python nemo_gym_rollouts.py CONFIG ROWS MODEL_URL

Prints the answer of the agent to each row, a line each. What `gym env start` does beside this is to make an environment
for each server and a Ray cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
import yaml

CONFIG = yaml.safe_load(Path(sys.argv[1]).read_text())
ROWS = [json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()]
CONFIG["policy_model"] = {
    "responses_api_models": {
        "vllm_model": {
            "entrypoint": "app.py", "base_url": sys.argv[3], "api_key": "x", "model": "toy",
            "return_token_id_information": False, "uses_reasoning_parser": False,
        }
    }
}  # fmt: skip


def listener() -> socket.socket:
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    return found


SOCKETS = {name: listener() for name in CONFIG}
for name, group in CONFIG.items():
    for kind in group.values():
        for settings in kind.values():
            settings.update(host="127.0.0.1", port=SOCKETS[name].getsockname()[1])
os.environ["NEMO_GYM_CONFIG_DICT"] = json.dumps(CONFIG)  # where NeMo Gym's own processes find it

from nemo_gym.config_types import BaseServerConfig  # noqa: E402
from nemo_gym.global_config import get_global_config_dict  # noqa: E402
from nemo_gym.server_utils import ServerClient, get_global_aiohttp_client  # noqa: E402
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent  # noqa: E402
from responses_api_models.vllm_model.app import VLLMModel  # noqa: E402

from evalharness.rl.clients.nemo_gym import WorldServer  # noqa: E402

SERVERS: dict[str, Any] = {
    "evalharness": WorldServer,
    "evalharness_agent": GymnasiumAgent,
    "policy_model": VLLMModel,
}


async def main() -> None:
    head = BaseServerConfig(host="127.0.0.1", port=1)  # nobody asks it
    client = ServerClient(head_server_config=head, global_config_dict=get_global_config_dict())
    running, worlds = [], None
    for name, kind in SERVERS.items():
        os.environ["NEMO_GYM_CONFIG_PATH"] = name
        made = kind(config=kind.load_config_from_global_config(), server_client=client)
        worlds = worlds or made
        server = uvicorn.Server(uvicorn.Config(made.setup_webserver(), log_level="warning"))
        SOCKETS[name].listen()
        running.append((server, asyncio.create_task(server.serve([SOCKETS[name]]))))
    asked = [client.post(row["agent_ref"]["name"], "/run", json=row) for row in ROWS]
    for answer in await asyncio.gather(*asked):
        print(json.dumps(await answer.json()))
    # An episode that its agent left is closed by the endpoint that agents of later releases know.
    opened = await client.post("evalharness", "/reset", json=ROWS[0])
    print((await opened.json())["info"], len(worlds.session_state))
    await client.post("evalharness", "/close", json={}, cookies=opened.cookies)
    print(len(worlds.session_state))
    await get_global_aiohttp_client().close()
    for server, _ in running:
        server.should_exit = True
    await asyncio.gather(*(task for _, task in running))


asyncio.run(main())
