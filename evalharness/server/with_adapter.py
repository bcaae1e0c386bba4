"""A model server of the base, which several runs may share, with one LoRA adapter in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalharness.errors import UserError
from evalharness.server.interface import ModelServer

VARIABLES = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"}
"""What lets vLLM take adapters while it runs. It listens on loopback alone."""


def served_as(identity: str) -> str:
    """The adapter's name on the server: other weights have another one, so that no server mixes them up."""
    return f"lora-{identity[:16]}"


class WithAdapter:
    """The server, which after each start has the adapter under `name`."""

    def __init__(self, server: ModelServer, name: str, adapter: Path) -> None:
        self._server = server
        self._name = name
        self._adapter = adapter.absolute()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def start(self) -> None:
        await self._server.start()
        await self._load()

    async def restart(self) -> None:
        await self._server.restart()
        await self._load()

    async def _load(self) -> None:
        """Raises UserError where vLLM refuses the adapter."""
        import aiohttp

        headers = {"Authorization": f"Bearer {key}"} if (key := self._server.api_key) else {}
        wanted = {"lora_name": self._name, "lora_path": str(self._adapter)}
        timeout = aiohttp.ClientTimeout(total=600)
        try:
            async with (
                aiohttp.ClientSession(headers=headers, timeout=timeout) as http,
                http.post(f"{self._server.base_url}/load_lora_adapter", json=wanted) as response,
            ):
                said = await response.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UserError(f"vLLM did not take the adapter {self._adapter}: {error}") from None
        if response.status != 200 and "already been loaded" not in said:
            raise UserError(
                f"vLLM refuses the adapter {self._adapter} (HTTP {response.status}): {said[:500]}; without "
                "--lora-serve it is merged"
            )
