"""A program that holds a managed server: tells its status on stdout, then `ready`, and waits for the server's end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from evalharness.models.serving.find import find_server
from evalharness.models.serving.managed import ManagedServer


async def main(model: str, served_name: str, log: str) -> None:
    server = ManagedServer(
        command=find_server(None),
        model=model,
        served_name=served_name,
        log_path=Path(log),
        on_status=lambda status: print("status", status, flush=True),
    )
    await server.start()
    print("ready", flush=True)
    await server.wait_dead()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
