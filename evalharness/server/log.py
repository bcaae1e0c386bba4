"""What the lines of a vLLM log announce. Pure."""

from __future__ import annotations

import re

# "(EngineCore_DP0 pid=12) ", "ERROR 11-21 22:19:03 [core.py:133] ", "[rank0]: "
_PREFIX = re.compile(
    r"^(?:\([\w-]+(?: pid=\d+)?\)\s*)?"
    r"(?:(?:INFO|WARNING|ERROR|CRITICAL|DEBUG)\s+\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[[^\]]*\]\s?)?"
    r"(?:\[rank\d+\]:?\s?)?"
)

_PHASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), phase)
    for pattern, phase in (
        (r"vLLM API server version|non-default args", "reading the model's configuration"),
        (r"Initializing a V1 LLM engine|Initializing an LLM engine", "starting the engine"),
        (r"Downloading|Fetching \d+ files", "downloading the model"),
        (r"Starting to load model|Loading (?:\w+ )*checkpoint shards", "loading weights"),
        (r"Loading weights took|Model loading took", "profiling memory"),
        (r"Dynamo bytecode transform|Compiling a graph|torch\.compile takes|Cache the graph", "compiling"),
        (r"GPU KV cache size|CPU KV cache size|KV cache size", "preparing the KV cache"),
        (r"[Cc]apturing (?:CUDA|cuda) ?graphs?", "capturing CUDA graphs"),
        (r"[Ww]arming up|init engine .* took", "warming up"),
        (r"Starting vLLM (?:API )?server|Started server process|Waiting for application", "starting the API"),
    )
)


def strip_prefix(line: str) -> str:
    """A log line without the process name, level, time and source in front of it."""
    return line[_match_end(line) :].rstrip()


def _match_end(line: str) -> int:
    match = _PREFIX.match(line)
    return match.end() if match else 0


def phase_of(line: str) -> str | None:
    """The phase of the start that this line announces, if any."""
    return next((phase for pattern, phase in _PHASES if pattern.search(line)), None)
