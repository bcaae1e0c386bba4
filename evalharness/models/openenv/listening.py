"""A server at its address, from the first request to the last."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from evalharness.base.errors import system_errors


def _http_log() -> logging.Logger:
    """What is no HTTP was answered with status 400; a stranger must not fill the log with it."""
    log = logging.getLogger("evalharness.http")
    log.filters = [lambda record: not (record.exc_info and isinstance(record.exc_info[1], BadHttpMessage))]
    return log


@asynccontextmanager
async def listening(
    application: web.Application,
    host: str,
    port: int,
    *,
    backlog: int,
    flags: str,
    cancel_when_gone: bool = False,
) -> AsyncIterator[str]:
    """The server's URL. Raises UserError when the port is taken; `flags` are those that name another one.
    `cancel_when_gone`: what is done for a client is cancelled when its connection is lost."""
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=_http_log(),
        shutdown_timeout=5.0,
        handler_cancellation=cancel_when_gone,
    )
    await runner.setup()
    try:
        with system_errors(f"cannot listen on {host}:{port}", f"; choose another {flags}"):
            await web.TCPSite(runner, host, port, backlog=backlog).start()
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
