"""What clients of a server say that answers too late. Run by a Python that has websockets."""

from __future__ import annotations

import asyncio
import json

from websockets.asyncio.server import ServerConnection, serve

from evalharness.clients.session import AsyncSession, Session, SessionError


async def late(socket: ServerConnection) -> None:
    async for message in socket:
        await asyncio.sleep(0.5)
        await socket.send(json.dumps({"type": "observation", "data": {"asked": json.loads(message)["type"]}}))


def in_a_thread(url: str) -> None:
    with Session(url, timeout_s=0.1) as session:
        for ask in (lambda: session.step("look"), session.state):
            try:
                print(ask())
            except SessionError as error:
                print(error)


async def main() -> None:
    async with serve(late, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        async with AsyncSession(url, timeout_s=0.1) as session:
            for ask in (lambda: session.step("look"), session.state):
                try:
                    print(await ask())
                except SessionError as error:
                    print(error)
        await asyncio.to_thread(in_a_thread, url)


asyncio.run(main())
