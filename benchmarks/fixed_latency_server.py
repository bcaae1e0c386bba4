"""An OpenAI-compatible chat server that answers every request after the same time, for benchmarks of the harness.

    python benchmarks/fixed_latency_server.py LATENCY_SECONDS [PLACES]

Prints its port. It works on PLACES requests at once, as a real server does that is saturated there, and lets others
wait in the order they came; without PLACES on any number. It says the same harmless thing to all of them and does
not read the conversation, so that it takes as little as possible of the cores it shares with what is measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

import uvloop
from aiohttp import web

ANSWER = json.dumps(
    {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Thought: I look around first.\nAction: look"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1500, "completion_tokens": 30},
    }
).encode()


async def main(latency: float, places: int | None) -> None:
    saturated = asyncio.Semaphore(places) if places else contextlib.nullcontext()

    async def chat(request: web.Request) -> web.Response:
        await request.read()
        async with saturated:
            await asyncio.sleep(latency)
        return web.Response(body=ANSWER, content_type="application/json")

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "fixed"}]})

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", chat)
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
