"""What a vLLM's log says: the phase of a start, why a server failed, and what to do about it. Pure."""

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
    """A log line without the process name, level, time and source in front of it."""
    return _PREFIX.sub("", line, count=1).rstrip()


def phase_of(line: str) -> str | None:
    """The phase of the start that this line announces, if any."""
    return next((phase for pattern, phase in _PHASES if pattern.search(line)), None)


_EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|NotFound)(?:\[[^\]]*\])?(?:: \S|$)"
)
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_NO_MESSAGE = re.compile(r'^\s*(?:File "|Traceback \(most recent|\^|~)')
_CHAINED = ("The above exception was the direct cause", "During handling of the above exception")

# Said by every process above the one that failed; never the reason itself.
_ECHO = re.compile(
    r"Engine core initialization failed|Failed core proc|EngineDeadError|EngineCore encountered an issue"
    r"|WorkerProc initialization failed|Engine process failed to start|CancelledError|cancelled"
    r"|KeyboardInterrupt|Executor failed|Worker failed with error"
)
# A process of the tree that was killed from outside leaves no exception, only these words of its parent.
_KILLED = re.compile(r"(?:Worker proc \S+ died|engine core exited|process \S+ died) unexpectedly")

_LINE_LENGTH = 2000
_SHOWN_LENGTH = 300
_TERSE = 50
"""A message shorter than this (`KeyError: 'added_tokens'`) is followed by the place it came from."""

_HINTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), hint)
    for pattern, hint in (
        (
            r"out of memory|No available memory for the cache blocks|less than desired GPU memory"
            r"|KV cache is needed, which is larger|larger than the (?:maximum number of tokens|available KV)",
            'give vLLM less to hold: --vllm-args "--gpu-memory-utilization 0.8 --max-model-len 4096"',
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


def root_cause(lines: Sequence[str], limit: int = 4) -> list[str]:
    """The lines that say why the server failed, the reason first; [] when the log names none.

    An exception is printed by the process that met it, then again, reworded, by every process above it: the
    first one that is no such echo is where to look. Where it was raised while another was handled, or because
    of another, the last of that chain knows most of what was being done.
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
    """`api_server.py: error: unrecognized arguments: --x`, as argparse says it."""
    program, found, _ = line.partition(": error: ")
    return bool(found) and len(program.split()) <= 3


def _end_of_chain(lines: Sequence[str], index: int, exceptions: Sequence[int]) -> int:
    for later in (other for other in exceptions if other > index):
        # Between the end of one message and the next traceback of its chain there are few lines.
        chained = any(line.startswith(_CHAINED) for line in lines[index + 1 : min(index + 12, later)])
        if not chained or _ECHO.search(lines[later]):
            break
        index = later
    return index


def _message(lines: Sequence[str], index: int) -> list[str]:
    """One exception's message: its first line and the indented ones that follow it."""
    first = lines[index]
    message = [first]
    for line in lines[index + 1 :]:
        if not line.startswith((" ", "\t")) or _NO_MESSAGE.match(line):
            break
        message.append(line.strip())
    if "ValidationError: " in first and len(message) > 1:
        # pydantic: "1 validation error for ModelConfig", then what it is about.
        message = [part.removeprefix("Value error, ").partition(" [type=")[0] for part in message[1:]]
        message = [part for part in message if not part.startswith("For further information")]
    elif len(first) < _TERSE and len(message) == 1 and (place := _raised_at(lines[:index])):
        message.append(place)
    return message


def _raised_at(before: Sequence[str]) -> str | None:
    """File, line and code of the last frame above an exception."""
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
    """What to do about a failure, where it is a known one."""
    return next((hint for pattern, hint in _HINTS if pattern.search(text)), None)


def derived_max_model_len(text: str) -> int | None:
    """The longest context the model allows, from vLLM's refusal of a longer one."""
    match = re.search(r"derived max_model_len \(\w+=([\d.]+)", text)
    return int(float(match.group(1))) if match else None


_SIGNALS = {
    4: ": this build needs instructions that the processor lacks",
    7: ": shared memory is full, as in a container started without --shm-size",
    9: ", as the kernel does when memory runs out",
}


def explain(seen: str, log: str, path: Path) -> str:
    """What was seen of a failure, its reason in `log`, what to do, and where the whole log is."""
    reason = root_cause(log.splitlines())
    lines = [f"{seen}: {reason[0]}" if reason else seen, *reason[1:]]
    hint = hint_for("\n".join(lines)) or (hint_for(log) if not reason else None)
    if hint:
        lines.append(hint)
    lines.append(f"the whole log: {path}")
    return "\n  ".join(lines)


def ending(returncode: int | None) -> str:
    """An exit status in words."""
    if returncode is None:
        return "no exit status"
    if returncode >= 0:
        return f"exit status {returncode}"
    return f"killed by signal {-returncode}{_SIGNALS.get(-returncode, '')}"
