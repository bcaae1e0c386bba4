"""A program that holds a managed server: says `ready {json}` on stdout and waits until the server has ended."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from evalharness.server import ManagedServer, find_server


async def main(model: str, served_name: str, log: str) -> None:
    async with ManagedServer(
        command=find_server(None), model=model, served_name=served_name, log_path=Path(log)
    ) as server:
        print("ready", json.dumps({"pid": server.pid, "base_url": server.base_url}), flush=True)
        await server.wait_dead()
        print("dead", json.dumps({"failure": server.failure()}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
