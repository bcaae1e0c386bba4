"""A vLLM for several tests, of several files and processes. `python shared_vllm.py PLACE CHECKPOINT PYTHON`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from evalharness.models.serving.find import find_server
from evalharness.models.serving.managed import ManagedServer

ARGUMENTS = "--max-model-len 32768 --enable-auto-tool-choice --tool-call-parser hermes"
NAME = "toy"
_LONGEST_S = 3600.0
"""Should the session be killed, the server ends by itself."""


@dataclass(frozen=True)
class SharedVllm:
    place: Path
    checkpoint: Path

    @property
    def base_url(self) -> str:
        return (self.place / "url").read_text()


def start(place: Path, checkpoint: Path, python: Path) -> None:
    words = [sys.executable, __file__, str(place), str(checkpoint), str(python)]
    log = place / "process.log"
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, start_new_session=True)
    while not (place / "url").exists():
        assert process.poll() is None, log.read_text()
        time.sleep(0.5)
    (place / "pid").write_text(str(process.pid))


def stop(place: Path) -> None:
    """Its supervisor ends the server with it."""
    os.kill(int((place / "pid").read_text()), signal.SIGTERM)


async def serve(place: Path, checkpoint: str, python: str) -> None:
    server = ManagedServer(
        model=checkpoint,
        served_name=NAME,
        log_path=place / "server.log",
        command=find_server(python),
        extra_args=ARGUMENTS.split(),
    )
    await server.start()
    (place / "url").write_text(server.base_url)
    await asyncio.sleep(_LONGEST_S)
    await server.stop()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
