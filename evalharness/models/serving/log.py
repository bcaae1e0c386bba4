"""Read a vLLM's log: the phase of a start, the reason of a failure, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

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
    """Return a log line without the process name, level, time and source at its start."""
    return _PREFIX.sub("", line, count=1).rstrip()


def phase_of(line: str) -> str | None:
    """Return the phase of the start that this line announces, if any."""
    return next((phase for pattern, phase in _PHASES if pattern.search(line)), None)


_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|NotFound)(?:\[[^\]]*\])?(?:: \S|$)"
)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_NO_MESSAGE = re.compile(r'^\s*(?:File "|Traceback \(most recent|\^|~)')
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")

# Matches messages of the parents of the failed process. They never contain the reason of the failure.
_ECHO = re.compile(
    r"Engine core initialization failed|Failed core proc|EngineDeadError|EngineCore encountered an issue"
    r"|WorkerProc initialization failed|Engine process failed to start|CancelledError|cancelled"
    r"|KeyboardInterrupt|Executor failed|Worker failed with error"
)
# A process that was killed from outside prints no exception; its parent prints one of these lines.
_KILLED = re.compile(r"(?:Worker proc \S+ died|engine core exited|process \S+ died) unexpectedly")

_LINE_LENGTH = 2000
_SHOWN_LENGTH = 300
_TERSE = 50
"""A message shorter than this (`KeyError: 'added_tokens'`) is followed by the source line that raised it."""

_HINTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), hint)
    for pattern, hint in (
        (
            r"out of memory|No available memory for the cache blocks|less than desired GPU memory"
            r"|KV cache is needed, which is larger|larger than the (?:maximum number of tokens|available KV)",
            'make vLLM use less memory: --vllm-args "--gpu-memory-utilization 0.8 --max-model-len 4096"',
        ),
        (
            r"default chat template is no longer allowed|no chat template",
            'the tokenizer has no chat template; name one: --vllm-args "--chat-template FILE"',
        ),
        (
            r"on kv cache allocation is less than requested",
            "leave more memory free, or ask for less cache: set VLLM_CPU_KVCACHE_SPACE=1 (GiB)",
        ),
        (
            r"AssertionError.*\bloaded_weight|size mismatch|no module or parameter named"
            r"|not initialized from checkpoint",
            "the weights do not fit config.json; copy the whole checkpoint again",
        ),
        (
            r"at (?:transformers|tokenizers)/\S*token",
            "the tokenizer's files are damaged or of another version; copy them again from the base model",
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
            "this vLLM does not accept that argument; check --vllm-args",
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


def root_cause(lines: Sequence[str], limit: int = 4) -> list[str]:
    """Return the lines that say why the server failed, the reason first; [] if the log names none.

    The process that fails prints its exception first; later its parent processes print messages that match `_ECHO`. So
    the reason is the first exception that does not match `_ECHO`. In a chain of exceptions ("During handling of the
    above exception ..."), the last exception explains most.
    """
    plain = [strip_prefix(line[:_LINE_LENGTH]) for line in lines]
    for line in plain:
        if _is_argument_error(line):
            return [_shorten(line)]
    exceptions = [index for index, line in enumerate(plain) if _EXCEPTION.match(line)]
    for index in exceptions:
        if not _ECHO.search(plain[index]):
            last = _end_of_chain(plain, index, exceptions)
            return [_shorten(part) for part in _message(plain, last)[:limit]]
    for line in plain:
        if _KILLED.search(line):
            return [_shorten(line), "(the kernel kills processes when memory runs out)"]
    return next(([_shorten(plain[index])] for index in exceptions if "ancelled" not in plain[index]), [])


def _is_argument_error(line: str) -> bool:
    """Return whether argparse printed the line: `api_server.py: error: unrecognized arguments: --x`."""
    program, mark, _ = line.partition(": error: ")
    return bool(mark) and len(program.split()) <= 3


def _end_of_chain(lines: Sequence[str], index: int, exceptions: Sequence[int]) -> int:
    for later in (other for other in exceptions if other > index):
        # The next traceback of a chain begins a few lines after the end of a message.
        chained = any(line.startswith(_CHAINED) for line in lines[index + 1 : min(index + 12, later)])
        if not chained or _ECHO.search(lines[later]):
            break
        index = later
    return index


def _message(lines: Sequence[str], index: int) -> list[str]:
    """Return one exception's message: its first line and the indented lines after it."""
    first = lines[index]
    message = [first]
    for line in lines[index + 1 :]:
        if not line.startswith((" ", "\t")) or _NO_MESSAGE.match(line):
            break
        message.append(line.strip())
    if "ValidationError: " in first and len(message) > 1:
        # pydantic: "1 validation error for ModelConfig", then the errors.
        message = [part.removeprefix("Value error, ").partition(" [type=")[0] for part in message[1:]]
        message = [part for part in message if not part.startswith("For further information")]
    elif len(first) < _TERSE and len(message) == 1 and (place := _find_raising_line(lines[:index])):
        message.append(place)
    return message


def _find_raising_line(before: Sequence[str]) -> str | None:
    """Return file, line and code of the last frame above an exception."""
    code = ""
    for line in reversed(before[-4:]):
        if frame := _FRAME.match(line):
            file = frame["file"].rpartition("site-packages/")[2]
            return f"at {file}:{frame['line']}: {code}".rstrip(": ")
        if line.strip("^~ \t"):
            code = line.strip()
    return None


def _shorten(line: str) -> str:
    text = line.strip()
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def hint_for(text: str) -> str | None:
    """Return advice for a known failure."""
    return next((hint for pattern, hint in _HINTS if pattern.search(text)), None)


def read_max_model_len(text: str) -> int | None:
    """Return the model's longest context, as vLLM states it when it refuses a longer one."""
    match = re.search(r"derived max_model_len \(\w+=([\d.]+)", text)
    return int(float(match.group(1))) if match else None


_SIGNALS = {
    4: ": this build needs instructions that the processor lacks",
    7: ": shared memory is full, as in a container started without --shm-size",
    9: ", as the kernel does when memory runs out",
}


def explain(event: str, log: str, path: Path) -> str:
    """Return the event of a failure, its reason from `log`, advice, and the path of the whole log."""
    reason = root_cause(log.splitlines())
    lines = [f"{event}: {reason[0]}" if reason else event, *reason[1:]]
    hint = hint_for("\n".join(lines)) or (hint_for(log) if not reason else None)
    if hint:
        lines.append(hint)
    lines.append(f"the whole log: {path}")
    return "\n  ".join(lines)


def ending(returncode: int | None) -> str:
    """Describe an exit status."""
    if returncode is None:
        return "no exit status"
    if returncode >= 0:
        return f"exit status {returncode}"
    return f"killed by signal {-returncode}{_SIGNALS.get(-returncode, '')}"
