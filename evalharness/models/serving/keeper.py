"""Servers that stay between runs: how one is started, and the process that owns it.

`start_kept` runs this module, `python -P -m evalharness.models.serving.keeper REQUEST.json`, and waits until it is
ready. That process starts the vLLM and says on standard output what it is doing, a JSON line each: {"status": ...},
then {"ready": ...} with what `Kept` holds, or {"failed": ...}. It writes the file by which runs find the server, and
ends with it: at SIGTERM, when the server dies, or when nobody has used it for as long as the request says.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evalharness.base.errors import EvalharnessError, UserError
from evalharness.base.locks import exclusive
from evalharness.models.serving.find import find_server
from evalharness.models.serving.kept import IDLE_S, Kept, kept_folder, kept_key, read_kept
from evalharness.models.serving.managed import ManagedServer
from evalharness.models.serving.metrics import Reading, metrics_url, read_metrics

_LOOK_EVERY = 2.0


@dataclass(frozen=True)
class ToKeep:
    """What is served, as `own_servers` found it out for a run of the same options."""

    model: str
    """As it was named."""
    path: str
    """The checkpoint's folder, or the hub id."""
    served_name: str
    identity: Mapping[str, Any]
    extra: Sequence[str] = ()
    vllm: str | None = None
    idle_s: float = IDLE_S
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return kept_key(self.identity, find_server(self.vllm), self.extra, self.variables)


def start_kept(what: ToKeep, on_status: Callable[[str], None]) -> tuple[Kept, bool]:
    """(the server, whether it was started now). Raises UserError where it does not start; leaves no process then."""
    folder = kept_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with exclusive(
        folder / f"{what.key}.lock", lambda: on_status("another command starts this server; waiting")
    ):
        path = folder / f"{what.key}.json"
        if (kept := read_kept(path)) is not None:
            kept.touch()
            return kept, False
        return _start(what, folder / f"{what.key}.log", on_status), True


def _start(what: ToKeep, log: Path, on_status: Callable[[str], None]) -> Kept:
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="evalharness-") as scratch:
        written = Path(scratch) / "request.json"
        written.write_text(json.dumps(asdict(what) | {"log": str(log)}), encoding="utf-8")
        with log.open("ab") as output:
            # A session of its own: closing the terminal does not end it, nor does Ctrl-C once it is ready.
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "evalharness.models.serving.keeper", str(written)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        try:
            return _wait_ready(process, on_status)
        except BaseException:
            process.send_signal(signal.SIGTERM)
            process.wait()
            raise


def _wait_ready(process: subprocess.Popen[bytes], on_status: Callable[[str], None]) -> Kept:
    """The server once it is ready. Raises UserError, which says why it is not."""
    assert process.stdout is not None
    for line in process.stdout:
        said = json.loads(line)
        if "status" in said:
            on_status(said["status"])
        elif "failed" in said:
            raise UserError(said["failed"])
        else:
            return Kept(**said["ready"])
    raise UserError("the process that keeps the server ended before it was ready")


def _say(**what: Any) -> None:
    """To who started us; nobody listens once the server is ready."""
    with contextlib.suppress(OSError, ValueError):
        print(json.dumps(what), flush=True)


async def keep(log: str, **request: Any) -> int:
    import psutil

    what = ToKeep(**request)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    server = ManagedServer(
        command=find_server(what.vllm),
        model=what.path,
        served_name=what.served_name,
        log_path=Path(log),
        extra_args=what.extra,
        on_status=lambda text: _say(status=text),
        variables=what.variables,
    )
    starting = asyncio.create_task(server.start())
    stopping = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return 1
        await starting
        kept = Kept(
            key=what.key,
            model=what.model,
            served=what.path,
            served_name=what.served_name,
            identity=what.identity,
            base_url=server.base_url,
            version=server.version,
            argv=server.argv,
            max_model_len=server.max_model_len,
            keeper_pid=os.getpid(),
            keeper_started=psutil.Process().create_time(),
            started=time.time(),
            idle_s=what.idle_s,
            log=log,
        )
        kept.write()
        try:
            _say(ready=asdict(kept))
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
    sys.exit(asyncio.run(keep(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
