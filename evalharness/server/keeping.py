"""Starting a kept server and waiting until it is ready."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalharness.errors import UserError
from evalharness.server.find import find_server
from evalharness.server.kept import IDLE_S, Kept, kept_folder, kept_key, read_kept
from evalharness.server.lock import exclusive


@dataclass(frozen=True)
class ToKeep:
    """What is served, as `policy.resolve` found it out for a run of the same options."""

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
            return kept, False
        _start(what, folder / f"{what.key}.log", on_status)
        if (kept := read_kept(path)) is None:
            raise UserError(f"the server of {what.model} ended as soon as it was ready; its log: {folder}")
        return kept, True


def _start(what: ToKeep, log: Path, on_status: Callable[[str], None]) -> None:
    request = {
        "key": what.key,
        "model": what.model,
        "path": what.path,
        "served_name": what.served_name,
        "identity": dict(what.identity),
        "extra": list(what.extra),
        "vllm": what.vllm,
        "variables": dict(what.variables),
        "idle_s": what.idle_s,
        "log": str(log),
    }
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="evalharness-") as scratch:
        written = Path(scratch) / "request.json"
        written.write_text(json.dumps(request), encoding="utf-8")
        with log.open("ab") as output:
            # A session of its own: closing the terminal does not end it, nor does Ctrl-C once it is ready.
            process = subprocess.Popen(
                [sys.executable, "-m", "evalharness.server.keeper", str(written)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        try:
            failed = _wait_ready(process, on_status)
        except BaseException:
            process.send_signal(signal.SIGTERM)
            process.wait()
            raise
        if failed is not None:
            process.wait()
            raise UserError(failed)


def _wait_ready(process: subprocess.Popen[bytes], on_status: Callable[[str], None]) -> str | None:
    """None once it is ready, else why it is not."""
    assert process.stdout is not None
    for line in process.stdout:
        said = json.loads(line)
        if "status" in said:
            on_status(said["status"])
        elif "failed" in said:
            return str(said["failed"])
        else:
            return None
    return "the process that keeps the server ended before it was ready"
