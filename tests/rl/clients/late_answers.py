"""What clients of a server say that answers too late, and what they take for its answer after Ctrl-C. Run by a Python
that has websockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import signal
import threading

from websockets.asyncio.server import ServerConnection, serve

from evalharness.rl.clients.session import AsyncSession, Session, SessionError


async def late(socket: ServerConnection) -> None:
    async for message in socket:
        await asyncio.sleep(0.5)
        await socket.send(json.dumps({"type": "observation", "data": {"asked": json.loads(message)["type"]}}))


async def listen(urls: queue.SimpleQueue[str]) -> None:
    async with serve(late, "127.0.0.1", 0) as server:
        urls.put(f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}")
        await asyncio.Event().wait()


async def awaited(url: str) -> None:
    async with AsyncSession(url, timeout_s=0.1) as session:
        for ask in (lambda: session.step("look"), session.state):
            try:
                print(await ask())
            except SessionError as error:
                print(error)


def called(url: str) -> None:
    with Session(url, timeout_s=0.1) as session:
        for ask in (lambda: session.step("look"), session.state):
            try:
                print(ask())
            except SessionError as error:
                print(error)


def interrupted(url: str) -> None:
    """As a notebook goes on after Ctrl-C."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with Session(url) as session:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with contextlib.suppress(KeyboardInterrupt):
            print(session.step("look"))
        try:
            print(session.state())
        except SessionError as error:
            print(error)


addresses: queue.SimpleQueue[str] = queue.SimpleQueue()
threading.Thread(target=lambda: asyncio.run(listen(addresses)), daemon=True).start()
address = addresses.get()
asyncio.run(awaited(address))
called(address)
interrupted(address)
