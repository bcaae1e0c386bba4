"""A model server of our own as a run sees it, on this machine or on a node of a cluster."""

from __future__ import annotations

from typing import Protocol


class ModelServer(Protocol):
    version: str | None
    """Of vLLM."""
    argv: list[str]
    api_key: str | None
    """What it wants from who asks it; None where only this machine can."""

    @property
    def base_url(self) -> str: ...

    async def start(self) -> None:
        """Start and wait until ready. Raises UserError or InfrastructureError, leaving no process."""

    async def stop(self) -> None:
        """End it and all its processes. Idempotent."""

    async def restart(self) -> None: ...

    async def kill(self) -> None:
        """End one that is alive and no longer answers; it counts as having died."""

    def alive(self) -> bool: ...

    async def wait_dead(self) -> None:
        """Until it has ended, by itself or by `stop`."""

    def failure(self) -> str | None:
        """Why it died by itself; None while it lives or when it was stopped."""
