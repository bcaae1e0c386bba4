"""A client of a test's chat server, and a run against it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from chat_server import ChatServer

from evalharness.config import RunConfig
from evalharness.models.endpoint import ChatEndpoint, Sampling
from evalharness.runs.evaluation import RunOutcome, evaluate


@asynccontextmanager
async def asking(
    url: str, *, sampling: Sampling | None = None, **options: Any
) -> AsyncIterator[ChatEndpoint]:
    """A client that has asked for its one real reply."""
    endpoint = ChatEndpoint(url, "toy", sampling=sampling or Sampling(), **options)
    try:
        await endpoint.start()
        yield endpoint
    finally:
        await endpoint.close()


async def evaluated(server: ChatServer, folder: Path, **options: Any) -> RunOutcome:
    """Of the built-in suite."""
    config = RunConfig.of(model=server.url, model_name="toy", suite="open", output=folder, **options)
    return await asyncio.to_thread(evaluate, config)
