"""A vLLM server that the harness starts for one model, watches, and stops at its own end."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError
from evalharness.models.serving.arguments import (
    LOOPBACK,
    check_extra_arguments,
    option_names,
    server_arguments,
    server_environment,
)
from evalharness.models.serving.checkpoint import (
    CheckpointError,
    check_checkpoint,
    is_local,
    model_context_length,
)
from evalharness.models.serving.find import ServerCommand
from evalharness.models.serving.log import ending, explain, phase_of, read_max_model_len
from evalharness.models.serving.model_server import ModelServer
from evalharness.models.serving.readiness import (
    context_length,
    first_request,
    is_healthy,
)
from evalharness.models.serving.supervisor import SupervisedProcess

if TYPE_CHECKING:
    from aiohttp import ClientSession

CONTEXT_TOKENS = 8192
"""Default context length, if the model allows it."""
START_TIMEOUT = {"cpu": 900.0, "gpu": 1800.0}
"""Seconds to wait until a server is ready (a big model loads for many minutes)."""
_STATUS_EVERY = 5.0
_LOG_BYTES = 4_000_000
"""Maximum bytes of a failed server's log that are searched for the reason."""

_LAST_LINES = 400


class ServerStartError(UserError):
    """The server did not become ready; the message gives the reason and, if known, the remedy."""


class _AttemptError(Exception):
    """One attempt to start vLLM failed; the exception has the event as its message, and the attempt's log."""

    def __init__(self, event: str, log: str) -> None:
        super().__init__(event)
        self.log = log


class ManagedServer(ModelServer):
    """Call `start`, send requests to `base_url`, and call `stop` last.

    The server is ready when /health and one chat request were answered: some failures (an attention shape without
    a kernel, a missing chat template) appear only then. When this process ends, even by SIGKILL, the server's whole
    process tree ends.
    """

    def __init__(
        self,
        *,
        command: ServerCommand,
        model: str | Path,
        served_name: str,
        log_path: Path,
        extra_args: Sequence[str] = (),
        on_status: Callable[[str], None] | None = None,
        variables: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`model` is a checkpoint folder or a hub id. `on_status` gets a short text at every phase of the start and
        every five seconds. `variables` are environment variables of this server only, such as its GPUs;
        `environment` replaces this process's environment."""
        check_extra_arguments(extra_args)
        self.command = command
        self.model = str(Path(model).expanduser().absolute()) if is_local(model) else str(model)
        self.served_name = served_name
        self.log_path = log_path
        self.version = command.version
        self.port = 0
        self.argv: list[str] = []
        self.max_model_len = 0
        """Context length in tokens that the running server states."""
        self._extra = list(extra_args)
        self._variables = dict(variables or {})
        self._environment = environment
        self._on_status = on_status or (lambda _: None)
        self._timeout = START_TIMEOUT[command.kind]
        self._process: SupervisedProcess | None = None
        self._log_start = 0
        self._stopping = False

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/v1"

    def alive(self) -> bool:
        return self._process is not None and self._process.alive

    async def wait_dead(self) -> None:
        """Wait until the server has ended, by itself or by `stop`."""
        if self._process is not None:
            await self._process.wait()

    def failure(self) -> str | None:
        """Return why the server died by itself, as its log says; None while it runs or after `stop`."""
        if self._process is None or self._process.alive or self._stopping:
            return None
        # Read only the end of the log: earlier error lines concern single requests, not the server's death.
        end = self._log_text(last_lines=_LAST_LINES)
        return explain(f"vLLM died ({ending(self._process.returncode)})", end, self.log_path)

    async def stop(self) -> None:
        """End the server and all its processes. Idempotent."""
        self._stopping = True
        if self._process is not None:
            await self._process.stop()

    async def kill(self) -> None:
        """End a server that is alive but no longer answers; it counts as dead."""
        if self._process is not None:
            await self._process.stop()

    async def start(self) -> None:
        """Start and wait until ready. Raises `CheckpointError` or `ServerStartError`; no process is then left."""
        context: int | None = default_context(self.model)
        if is_local(self.model):
            checkpoint = check_checkpoint(self.model)
            if checkpoint.has_chat_template is False and "chat-template" not in option_names(self._extra):
                raise CheckpointError(
                    f"the tokenizer in {self.model} has no chat template; "
                    'name one: --vllm-args "--chat-template FILE"'
                )
        tries = 3
        while True:
            tries -= 1
            self.port = self._choose_port()
            try:
                return await self._start_once(context)
            except _AttemptError as failed:
                derived = read_max_model_len(failed.log)
                ours = "max-model-len" not in option_names(self._extra)
                if tries and ours and derived and derived != context:
                    context = derived
                elif tries and "address already in use" in failed.log.lower():
                    self.port = 0
                else:
                    raise ServerStartError(explain(str(failed), failed.log, self.log_path)) from None

    async def _start_once(self, context: int | None) -> None:
        self.argv = server_arguments(
            self.command,
            model=self.model,
            served_name=self.served_name,
            port=self.port,
            max_model_len=context,
            extra=self._extra,
        )
        env = server_environment(
            self.command,
            local_model=is_local(self.model),
            extra=self._extra,
            base={**(os.environ if self._environment is None else self._environment), **self._variables},
        )
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._stopping = False
        # Each start of vLLM leaves about six socket files. A separate folder allows us to remove them.
        scratch = _socket_folder()
        env["VLLM_RPC_BASE_PATH"] = str(scratch)
        self._process = await SupervisedProcess.start(self.argv, env=env, log=self.log_path, scratch=scratch)
        try:
            await self._wait_ready(self._process)
            self._process.at_work()
        except BaseException:
            await self.stop()
            raise

    async def _wait_ready(self, process: SupervisedProcess) -> None:
        import aiohttp

        began = reported = time.monotonic()
        phase, read = "loading vLLM", self._log_start
        version = f" {self.version}" if self.version else ""
        self._on_status(f"starting vLLM{version} ({self.command.kind}) on port {self.port}")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            while not await is_healthy(http, self.base_url):
                elapsed = time.monotonic() - began
                if not process.alive:
                    raise _AttemptError(
                        f"vLLM did not start ({ending(process.returncode)} after {elapsed:.0f} s)",
                        self._log_text(),
                    )
                if elapsed > self._timeout:
                    raise _AttemptError(
                        f"vLLM was not ready after {elapsed:.0f} s (last seen: {phase})", self._log_text()
                    )
                lines, read = self._new_lines(read)
                now = next(filter(None, map(phase_of, reversed(lines))), phase)
                if now != phase or time.monotonic() - reported >= _STATUS_EVERY:
                    phase, reported = now, time.monotonic()
                    self._on_status(f"vLLM starts: {phase}, {elapsed:.0f} s")
                await asyncio.sleep(0.2)
            self._on_status(f"vLLM starts: first request, {time.monotonic() - began:.0f} s")
            await self._first_request(http, process, max(60.0, self._timeout - (time.monotonic() - began)))
            try:
                self.max_model_len = await context_length(http, self.base_url)
            except (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError):
                raise _AttemptError("vLLM does not list its model", self._log_text()) from None
        self._on_status(f"vLLM is ready after {time.monotonic() - began:.0f} s")

    async def _first_request(self, http: ClientSession, process: SupervisedProcess, limit: float) -> None:
        problem = await first_request(http, self.base_url, self.served_name, limit)
        if problem is None:
            return
        # If the engine dies, the server ends within seconds, and the log then has the reason.
        try:
            await asyncio.wait_for(process.wait(), 10)
        except TimeoutError:
            raise _AttemptError(problem, "") from None
        raise _AttemptError("vLLM died at the first chat request", self._log_text())

    def _choose_port(self) -> int:
        """Return the port of the last start if it is free, otherwise another free port."""
        if self.port and _is_free(self.port):
            return self.port
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            return int(probe.getsockname()[1])

    def _log_text(self, *, last_lines: int | None = None) -> str:
        """Return the log since this start (at most its last `_LOG_BYTES`), or only its last lines."""
        with self.log_path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, size - _LOG_BYTES))
            text = file.read().decode(errors="replace")
        return text if last_lines is None else "\n".join(text.splitlines()[-last_lines:])

    def _new_lines(self, position: int) -> tuple[list[str], int]:
        """Return the whole lines written to the log since `position`, and the position after them."""
        with self.log_path.open("rb") as file:
            file.seek(position)
            text = file.read(1_000_000)
        whole = text[: text.rfind(b"\n") + 1]
        return whole.decode(errors="replace").splitlines(), position + len(whole)


def default_context(model: str | Path) -> int:
    """Return the context length for a server if no argument sets it."""
    allowed = model_context_length(model)
    return CONTEXT_TOKENS if allowed is None else min(CONTEXT_TOKENS, allowed)


def _socket_folder() -> Path:
    """Make a folder with a short path: the path of a Unix socket has at most 107 bytes. Raises ServerStartError."""
    try:
        base = tempfile.gettempdir()  # raises OSError on a full disk
        return Path(tempfile.mkdtemp(prefix="evalharness-", dir=base if len(base) < 50 else "/tmp"))
    except OSError as error:
        raise ServerStartError(
            f"no temporary folder for vLLM's sockets: {error.strerror}; free some space, or set TMPDIR"
        ) from None


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
