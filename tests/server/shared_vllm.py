"""The vLLM that `evalharness server start` keeps for several tests, of several files and processes."""

from __future__ import annotations

import json
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

    @property
    def base_url(self) -> str:
        done = evalharness(self.variables, "server", "status", "--json", "-")
        [kept] = json.loads(done.stdout)["kept"]
        return str(kept["base_url"])
