"""The process that owns a kept server: `python -m evalharness.server.keeper REQUEST.json`.

It starts the vLLM, says on standard output what it is doing, a JSON line each ({"status": ...}, then {"ready": true} or
{"failed": ...}), writes the file by which runs find it, and ends with the server: at SIGTERM, when the server dies, or
when nobody has used it for as long as the request says.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from evalharness.errors import EvalharnessError
from evalharness.server.find import find_server
from evalharness.server.kept import Kept
from evalharness.server.managed import ManagedServer
from evalharness.server.metrics import Reading, metrics_url, read_metrics

_LOOK_EVERY = 2.0


def _say(**what: Any) -> None:
    """To who started us; nobody listens once the server is ready."""
    with contextlib.suppress(OSError, ValueError):
        print(json.dumps(what), flush=True)


async def keep(request: dict[str, Any]) -> int:
    import psutil

    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = ManagedServer(
        command=find_server(request["vllm"]),
        model=request["path"],
        served_name=request["served_name"],
        log_path=Path(request["log"]),
        extra_args=request["extra"],
        on_status=lambda text: _say(status=text),
        variables=request["variables"],
    )
    starting = asyncio.create_task(server.start())
    stopping = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return 1
        await starting
        kept = Kept(
            key=request["key"],
            model=request["model"],
            served=request["path"],
            served_name=request["served_name"],
            identity=request["identity"],
            base_url=server.base_url,
            version=server.version,
            argv=server.argv,
            max_model_len=server.max_model_len,
            keeper_pid=os.getpid(),
            keeper_started=psutil.Process().create_time(),
            started=time.time(),
            idle_s=request["idle_s"],
            log=request["log"],
        )
        kept.write()
        try:
            _say(ready=True)
            await _until_unused(kept, server, ended)
        finally:
            kept.path.unlink(missing_ok=True)
    except EvalharnessError as error:
        _say(failed=str(error))
        return 1
    finally:
        starting.cancel()
        stopping.cancel()
        await asyncio.gather(starting, stopping, return_exceptions=True)
        await server.stop()
    return 0


async def _until_unused(kept: Kept, server: ManagedServer, ended: asyncio.Event) -> None:
    """Runs leave a sign of life in the time of the kept file; what others ask, the server itself counts."""
    import aiohttp

    before: Reading | None = None
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
        while server.alive() and kept.path.exists() and kept.idle_for < kept.idle_s and not ended.is_set():
            now = await read_metrics(http, metrics_url(kept.base_url))
            if now is not None:
                if now.running or (before is not None and now.prompt_tokens != before.prompt_tokens):
                    kept.touch()
                before = now
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), min(_LOOK_EVERY, kept.idle_s))


if __name__ == "__main__":
    sys.exit(asyncio.run(keep(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
