"""Make the command line and the environment of a managed server."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError, system_errors
from evalharness.base.machine import core_numbers, cpu_flags, share_in_use
from evalharness.base.reading import read_bytes
from evalharness.config import PolicyConfig
from evalharness.models.serving.checkpoint import (
    CheckpointError,
    check_checkpoint,
    find_model_folder,
    model_config,
)
from evalharness.models.serving.find import ServerCommand

_REFUSED = {
    "model": "name the model with --model",
    "served-model-name": "evalharness itself names the served model",
    "host": "evalharness chooses the address of its server; start vLLM yourself to choose another",
    "port": "evalharness chooses a free port; start vLLM yourself to choose another",
    "uds": "evalharness chooses the address of its server; start vLLM yourself to choose another",
    "api-key": "evalharness makes a key if its server needs one",
    "ssl-keyfile": "a server that evalharness starts has no TLS",
    "ssl-certfile": "a server that evalharness starts has no TLS",
    "root-path": "evalharness sends its requests to the server's root",
}
THREADS_BIND = "VLLM_CPU_OMP_THREADS_BIND"
_FEW_CORES = 4
"""With at most this many cores, a CPU server computes on all cores. By default vLLM reserves one core for its front
end. On two cores this default gave 50 tokens/s of the demo model instead of 83, and a run through all five families
took 1.45 times as long. With more cores, vLLM's default is better: it binds threads to cores near their memory."""
_MULTIPROCESSING = "VLLM_ENABLE_V1_MULTIPROCESSING"
"""Set to 0: by default vLLM computes in another process on a CPU, to pin its threads. With the default, on two cores a
start took 36 s instead of 24, and eight tasks of ALFWorld 55 s instead of 50; the replies were the same."""
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Variables that make waiting threads sleep instead of spin. On two cores, spinning is faster if nothing else runs (131
turns in 58 s; 71 s with sleeping). During a training, spinning gave at most 0.1 turns/s, sleeping 0.3 to 0.6."""
_BUSY = 0.4
"""Threads sleep if other processes use more than this share of the cores; one busy core of two (0.5) is enough."""
# With one of these options, the server's processes run on several machines, so a loopback address would be wrong.
_MULTI_NODE = {"nnodes", "data-parallel-address", "distributed-executor-backend", "master-addr"}
LOOPBACK = "127.0.0.1"
_CACHE_SIZE = {"kv-cache-memory-bytes", "gpu-memory-utilization"}


def option_names(arguments: Sequence[str]) -> set[str]:
    """Return the names of long options as vLLM reads them: `--max_model_len=1` is `max-model-len`, `--no-x` is `x`."""
    names = (a[2:].partition("=")[0].replace("_", "-") for a in arguments if a.startswith("--"))
    return {name.removeprefix("no-") for name in names}


def option_value(arguments: Sequence[str], name: str) -> str | None:
    """Return the last value of the option `--name`; None if the option is missing."""
    value = None
    for index, argument in enumerate(arguments):
        key, equals, inline = argument.partition("=")
        if key.startswith("--") and key[2:].replace("_", "-") == name:
            value = inline if equals else next(iter(arguments[index + 1 : index + 2]), None)
    return value


def check_extra_arguments(extra: Sequence[str]) -> None:
    """Raise `UserError` if `--vllm-args` has an option that only the harness may set."""
    for name in sorted(option_names(extra) & _REFUSED.keys()):
        raise UserError(f"--vllm-args: --{name} is not allowed: {_REFUSED[name]}")


def extra_arguments(config: PolicyConfig, *, tools: bool) -> tuple[list[str], dict[str, Any]]:
    """Return vLLM's arguments besides the model, and the part of the model's identity that depends on them."""
    try:
        extra = shlex.split(config.vllm_args)
    except ValueError as error:
        raise UserError(f"--vllm-args cannot be split into words: {error}") from None
    check_extra_arguments(extra)
    if tools and "enable-auto-tool-choice" not in option_names(extra):
        raise UserError(
            "--agent tools needs a vLLM that reads tool calls; name the model's parser: --vllm-args "
            '"--enable-auto-tool-choice --tool-call-parser hermes"'
        )
    if config.sampling == "model" and "generation-config" not in option_names(extra):
        extra += ["--generation-config", "auto"]
    identity: dict[str, Any] = {"kind": "vllm"}
    if config.chat_template is not None:
        if "chat-template" in option_names(extra):
            raise UserError("--chat-template and --vllm-args both name a chat template; remove one")
        path, identity["chat_template_sha256"] = _chat_template(config.chat_template)
        extra += ["--chat-template", str(path)]
    return extra, identity


def _chat_template(path: Path) -> tuple[Path, str]:
    """Return the absolute path of the chat template, and its SHA-256."""
    path = path.expanduser().absolute()
    with system_errors(f"--chat-template {path} cannot be read"):
        return path, hashlib.sha256(read_bytes(path)).hexdigest()


def server_arguments(
    command: ServerCommand,
    *,
    model: str,
    served_name: str,
    port: int,
    max_model_len: int | None,
    extra: Sequence[str] = (),
) -> list[str]:
    """Return the whole command line. `extra` comes last; defaults that `extra` sets are omitted."""
    defaults: dict[str, tuple[str, ...]] = {
        "port": (str(port),),
        "seed": ("0",),
        # The default, `auto`, takes fields that a request omits from the checkpoint's generation_config.json.
        "generation-config": ("vllm",),
        "enable-prefix-caching": (),
        # A line for each of ten thousand requests would hide the other lines of the log.
        "disable-uvicorn-access-log": (),
    }
    if max_model_len is not None:
        defaults["max-model-len"] = (str(max_model_len),)
    if command.kind == "cpu":
        # Compiling takes the start from one minute to two to four, measured on two cores.
        defaults["enforce-eager"] = ()
        # A chunked prefill stops the engine if the reply is sampled with a seed: vLLM 0.32 resets the generator
        # after each chunk, which the CPU generator does not support ("CPU Generator does not use offset").
        defaults["no-enable-chunked-prefill"] = ()
        if _without_avx512():
            defaults["block-size"] = ("32",)
            if _fits_in_float32(model):
                defaults["dtype"] = ("float32",)
    given = option_names(extra)
    if "enable-chunked-prefill" in given:
        defaults.pop("no-enable-chunked-prefill", None)
    argv = [
        *command.argv,
        *command.model_flag,
        model,
        "--served-model-name",
        served_name,
        "--host",
        LOOPBACK,
    ]
    for name, values in defaults.items():
        if name not in given:
            argv += [f"--{name}", *values]
    return [*argv, *extra]


def _without_avx512() -> bool:
    """Return whether this x86 CPU lacks AVX-512. Without AVX-512, torch multiplies bfloat16 matrices row by row, which
    took three quarters of the time of a small model."""
    flags = cpu_flags()
    return "avx2" in flags and "avx512bw" not in flags


def _fits_in_float32(model: str) -> bool:
    """Return whether the model is local and not quantised, and its weights in float32 take at most half the memory."""
    config = model_config(model)
    folder = find_model_folder(model)
    if config is None or folder is None or "quantization_config" in config:
        return False
    try:
        weights = check_checkpoint(folder).weight_bytes
    except CheckpointError:
        return False  # an incomplete checkpoint: vLLM downloads the rest
    return 2 * weights <= memory_bytes() // 2


def server_environment(
    command: ServerCommand,
    *,
    local_model: bool,
    extra: Sequence[str] = (),
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return `base` (default: our environment) with the server's variables. Variables that the user has set stay."""
    env = dict(os.environ if base is None else base)
    # vLLM would require the user's key from this variable, and refuse the harness's requests.
    env.pop("VLLM_API_KEY", None)
    env.update(command.env)
    env |= {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    # Without it, `python -m` would import modules from the current folder.
    env["PYTHONSAFEPATH"] = "1"
    if local_model:
        env.setdefault("HF_HUB_OFFLINE", "1")
    given = option_names(extra)
    if not given & _MULTI_NODE:
        env.setdefault("VLLM_HOST_IP", "127.0.0.1")
    if command.kind == "cpu" and not given & _CACHE_SIZE:
        env.setdefault("VLLM_CPU_KVCACHE_SPACE", str(cpu_cache_gib(memory_bytes())))
    if command.kind == "cpu" and THREADS_BIND not in env and len(cores := core_numbers()) <= _FEW_CORES:
        env[THREADS_BIND] = ",".join(map(str, cores))
        if _MULTIPROCESSING not in env:
            env |= {_MULTIPROCESSING: "0", "OMP_NUM_THREADS": str(len(cores))}
        if not env.keys() & _WAITING.keys() and share_in_use(cores) > _BUSY:
            env |= _WAITING
    return env


def cpu_cache_gib(memory: int) -> int:
    """Return the size of a CPU server's KV cache in GiB: a quarter of the memory, 1 to 4."""
    return max(1, min(4, memory // 4 // 2**30))


def memory_bytes() -> int:
    """Return the memory that this process may use: the machine's, or the container's limit if that is less."""
    import psutil

    total = psutil.virtual_memory().total
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text()))
        except (OSError, ValueError):
            continue
    return total
