"""A program: NeMo Gym's own collection over its agent, environment server and model server and our resources server.

    python nemo_gym_rollouts.py CONFIG ROWS ROLLOUTS MODEL_URL

Each server has a port of its own. What `gym env start` does beside this is to make an environment for each server and
a Ray cluster.
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
ROWS, ROLLOUTS = Path(sys.argv[2]), Path(sys.argv[3])
FIRST = json.loads(ROWS.read_text().splitlines()[0])
CONFIG["policy_model"] = {
    "responses_api_models": {
        "vllm_model": {
            "entrypoint": "app.py", "base_url": sys.argv[4], "api_key": "x", "model": "toy",
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
CONFIG["head_server"] = {"host": "127.0.0.1", "port": 1}  # nobody asks it
os.environ["NEMO_GYM_CONFIG_DICT"] = json.dumps(CONFIG)  # where NeMo Gym's own processes find it

from environment_servers.legacy_agent.app import LegacyAgentEnvironmentServer  # noqa: E402
from nemo_gym.rollout_collection import RolloutCollectionConfig, RolloutCollectionHelper  # noqa: E402
from nemo_gym.server_utils import ServerClient, get_global_aiohttp_client  # noqa: E402
from responses_api_agents.gymnasium_agent.app import GymnasiumAgent  # noqa: E402
from responses_api_models.vllm_model.app import VLLMModel  # noqa: E402

from evalharness.rl.clients.nemo_gym import WorldServer  # noqa: E402

SERVERS: dict[str, Any] = {
    "evalharness": WorldServer,
    "evalharness_agent": GymnasiumAgent,
    "evalharness_environment": LegacyAgentEnvironmentServer,
    "policy_model": VLLMModel,
}


async def main() -> None:
    client = ServerClient.load_from_global_config()
    running, worlds = [], None
    for name, kind in SERVERS.items():
        os.environ["NEMO_GYM_CONFIG_PATH"] = name
        made = kind(config=kind.load_config_from_global_config(), server_client=client)
        worlds = worlds or made
        server = uvicorn.Server(uvicorn.Config(made.setup_webserver(), log_level="warning"))
        SOCKETS[name].listen()
        running.append((server, asyncio.create_task(server.serve([SOCKETS[name]]))))
    collection = RolloutCollectionConfig(input_jsonl_fpath=str(ROWS), output_jsonl_fpath=str(ROLLOUTS))
    await RolloutCollectionHelper().run_from_config(collection)
    # The agent closes an episode whose model failed with this endpoint.
    opened = await client.post("evalharness", "/reset", json=FIRST)
    print((await opened.json())["info"], len(worlds.session_state))
    await client.post("evalharness", "/close", json={}, cookies=opened.cookies)
    print(len(worlds.session_state))
    await get_global_aiohttp_client().close()
    for server, _ in running:
        server.should_exit = True
    await asyncio.gather(*(task for _, task in running))


asyncio.run(main())
