"""The vLLM that `evalharness server start` keeps for several tests, of several files and processes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from command_line import evalharness

ARGUMENTS = "--max-model-len 32768 --enable-auto-tool-choice --tool-call-parser hermes"


@dataclass(frozen=True)
class SharedVllm:
    variables: dict[str, str]
    """For commands: in this home they find the server."""
    checkpoint: Path
    python: Path

    @property
    def served(self) -> tuple[object, ...]:
        """What is served, and how. With these options a command uses the server instead of starting one."""
        return (self.checkpoint, "--vllm", self.python, "--vllm-args", ARGUMENTS)

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """A sign of life now and then, as a run gives it: on a busy machine its next user comes late."""
        over = threading.Event()

        def touch() -> None:
            while not over.wait(30):
                for file in Path(self.variables["EVALHARNESS_HOME"], "kept-servers").glob("*.json"):
                    with contextlib.suppress(FileNotFoundError):
                        file.touch(exist_ok=True)

        living = threading.Thread(target=touch, daemon=True)
        living.start()
        try:
            yield
        finally:
            over.set()
            living.join()

    @property
    def base_url(self) -> str:
        done = evalharness(self.variables, "server", "status", "--json", "-")
        [kept] = json.loads(done.stdout)["kept"]
        return str(kept["base_url"])
