"""What a vLLM log says: the phase a start is in, and why it failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

# "(EngineCore_DP0 pid=12) ", "ERROR 11-21 22:19:03 [core.py:133] ", "[rank0]: "
_PREFIX = re.compile(
    r"^(?:\([\w-]+(?: pid=\d+)?\)\s*)?"
    r"(?:(?:INFO|WARNING|ERROR|CRITICAL|DEBUG)\s+\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[[^\]]*\]\s?)?"
    r"(?:\[rank\d+\]:?\s?)?"
)
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?:\[[^\]]*\])?: \S")
_ARGUMENTS = re.compile(r"^(?:[\w.-]+ ?)+: error: ")
_FRAME = re.compile(r'^\s*(?:File "|Traceback \(most recent|During handling|The above exception|\^|~)')

# Said by every process above the one that failed; never the reason itself.
_ECHO = re.compile(
    r"Engine core initialization failed|Failed core proc|EngineDeadError|EngineCore encountered an issue"
    r"|WorkerProc initialization failed|Engine process failed to start|CancelledError|cancelled"
    r"|KeyboardInterrupt"
)

_PHASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), phase)
    for pattern, phase in (
        (r"vLLM API server version|non-default args", "reading the model's configuration"),
        (r"Initializing a V1 LLM engine|Initializing an LLM engine", "starting the engine"),
        (r"Downloading|Fetching \d+ files", "downloading the model"),
        (r"Starting to load model|Loading (?:\w+ )*checkpoint shards", "loading weights"),
        (r"Loading weights took|Model loading took", "profiling memory"),
        (r"torch\.compile|[Cc]ompiling|Dynamo bytecode|Cache the graph", "compiling"),
        (r"GPU KV cache size|CPU KV cache size|KV cache size", "preparing the KV cache"),
        (r"[Cc]apturing (?:CUDA|cuda) ?graphs?", "capturing CUDA graphs"),
        (r"[Ww]arming up|init engine .* took", "warming up"),
        (r"Starting vLLM (?:API )?server|Started server process|Waiting for application", "starting the API"),
    )
)

_HINTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), hint)
    for pattern, hint in (
        (
            r"out of memory|No available memory for the cache blocks|less than desired GPU memory"
            r"|KV cache is needed, which is larger|larger than the (?:maximum number of tokens|available KV)",
            'give vLLM less to hold: --vllm-args "--gpu-memory-utilization 0.8 --max-model-len 4096"',
        ),
        (
            r"chat template",
            'the tokenizer has no chat template; name one: --vllm-args "--chat-template FILE"',
        ),
        (
            r"gated repo|401 Client Error|403 Client Error|must have access to it and be authenticated",
            "ask for access on the model's page, then set HF_TOKEN (or run: hf auth login)",
        ),
        (
            r"Repository Not Found|is not a local folder and is not a valid model identifier"
            r"|Invalid repository ID or local directory|not a valid repo",
            "check the model's name, or give --model the path of a local checkpoint folder",
        ),
        (
            r"couldn't connect to|offline mode is enabled|Name or service not known|Max retries exceeded"
            r"|Temporary failure in name resolution",
            "the model hub cannot be reached; give --model the path of a local checkpoint folder",
        ),
        (
            r"are not supported for now|does not recognize this architecture|has no vLLM implementation"
            r"|Cannot find model module|Model architectures",
            "this vLLM does not know the model; a newer one may: evalharness server install --version V",
        ),
        (
            r"trust_remote_code",
            'the model brings its own code; if you trust it: --vllm-args "--trust-remote-code"',
        ),
        (
            r"unrecognized arguments|invalid choice|expected one argument|invalid \S+ value",
            "this vLLM does not take that argument; look at --vllm-args",
        ),
        (
            r"Failed to infer device type|No CUDA GPUs are available|Found no NVIDIA driver"
            r"|libcuda\.so|libcudart\.so",
            "no usable GPU; for a machine without one: evalharness server install --cpu",
        ),
        (
            r"Head size .* is not supported|No valid attention backend|unsupported head",
            "no attention kernel of this vLLM fits the model's head size",
        ),
        (
            r"No space left on device",
            "free some disk space (/tmp and the run folder included), then run the same command again",
        ),
        (
            r"max_model_len .* is greater than",
            'ask for a shorter context: --vllm-args "--max-model-len N"',
        ),
        (
            r"SafetensorError|incomplete metadata|header too large|invalid header|not a zip archive",
            "the weights are damaged or incomplete; copy or download them again",
        ),
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


def root_cause(lines: Sequence[str], limit: int = 4) -> list[str]:
    """The lines that say why the server failed, the root cause first; [] when the log names none.

    An exception is printed by the process that met it, then again, reworded, by every process above it.
    The first one that is no such echo is the reason; the last one of its own chain is what it became.
    """
    plain = [strip_prefix(line) for line in lines]
    for index, line in enumerate(plain):
        if _ARGUMENTS.match(line):
            return [line]
        if _EXCEPTION.match(line) and not _ECHO.search(line):
            return [line, *_continuation(plain[index + 1 :], limit - 1)]
    for line in plain:
        if _EXCEPTION.match(line) and "Cancelled" not in line:
            return [line]
    return []


def _continuation(lines: Sequence[str], limit: int) -> list[str]:
    """Further lines of one exception's message: up to the next blank line, frame or log entry."""
    rest: list[str] = []
    for line in lines:
        if len(rest) == limit or not line.strip() or _FRAME.match(line) or _EXCEPTION.match(line):
            break
        if not line.startswith((" ", "\t")):
            break
        rest.append(line.strip())
    return rest


def hint_for(text: str) -> str | None:
    """What to do about a failure, where it is a known one."""
    return next((hint for pattern, hint in _HINTS if pattern.search(text)), None)


def derived_max_model_len(text: str) -> int | None:
    """The longest context the model allows, from vLLM's refusal of a longer one."""
    match = re.search(r"derived max_model_len \(\w+=([\d.]+)", text)
    return int(float(match.group(1))) if match else None
