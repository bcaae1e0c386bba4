"""The command line and environment that a managed server is started with."""

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
    known_folder,
    model_config,
)
from evalharness.models.serving.find import ServerCommand

_REFUSED = {
    "model": "name the model with --model",
    "served-model-name": "the harness names the served model itself",
    "host": "evalharness itself says where its server listens; start vLLM yourself for more",
    "port": "evalharness takes a free one; start vLLM yourself for more",
    "uds": "evalharness itself says where its server listens; start vLLM yourself for more",
    "api-key": "evalharness makes a key where its server needs one",
    "ssl-keyfile": "a server that evalharness starts has no TLS",
    "ssl-certfile": "a server that evalharness starts has no TLS",
    "root-path": "the harness talks to the server at its root",
}
THREADS_BIND = "VLLM_CPU_OMP_THREADS_BIND"
_FEW_CORES = 4
"""Up to here a CPU server computes on all cores. vLLM by itself leaves one to its own front end, which takes little:
on two cores 50 tokens/s of the demo model instead of 83, and a run through all five families took 1.45 times as long.
With more cores that one matters less, and vLLM's own choice minds which memory is near."""
_MULTIPROCESSING = "VLLM_ENABLE_V1_MULTIPROCESSING"
"""Without it the model computes in the engine's process. By itself vLLM starts one more on a CPU, to pin its threads.
On two cores a start took 36 s instead of 24 and eight tasks of ALFWorld 55 s instead of 50, with the same replies."""
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
"""Threads that wait for each other spin. Alone on two cores that is faster (131 turns in 58 s, else 71); beside a
training the server came to 0.0 to 0.1 turns/s, and with this to 0.3 to 0.6."""
_BUSY = 0.4
"""Share of the cores that others use from which threads sleep instead: less than one of two cores."""
# With one of these, processes on other machines have to find this one: no loopback address for them.
_MULTI_NODE = {"nnodes", "data-parallel-address", "distributed-executor-backend", "master-addr"}
LOOPBACK = "127.0.0.1"
_CACHE_SIZE = {"kv-cache-memory-bytes", "gpu-memory-utilization"}


def option_names(arguments: Sequence[str]) -> set[str]:
    """Long options as vLLM reads them: `--max_model_len=1` counts as `max-model-len`, `--no-x` as `x`."""
    names = (a[2:].partition("=")[0].replace("_", "-") for a in arguments if a.startswith("--"))
    return {name.removeprefix("no-") for name in names}


def option_value(arguments: Sequence[str], name: str) -> str | None:
    """The last value given to `--name`; None when it is not there."""
    value = None
    for index, argument in enumerate(arguments):
        key, equals, inline = argument.partition("=")
        if key.startswith("--") and key[2:].replace("_", "-") == name:
            value = inline if equals else next(iter(arguments[index + 1 : index + 2]), None)
    return value


def check_extra_arguments(extra: Sequence[str]) -> None:
    """Raises `UserError` for a `--vllm-args` that would take the server out of the harness's hands."""
    for name in sorted(option_names(extra) & _REFUSED.keys()):
        raise UserError(f"--vllm-args: --{name} is not taken here: {_REFUSED[name]}")


def extra_arguments(config: PolicyConfig, *, tools: bool) -> tuple[list[str], dict[str, Any]]:
    """What is passed to vLLM besides the model, and what of it is part of the identity."""
    try:
        extra = shlex.split(config.vllm_args)
    except ValueError as error:
        raise UserError(f"--vllm-args cannot be split into words: {error}") from None
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
            raise UserError("--chat-template and --vllm-args name a chat template each; leave one out")
        path, identity["chat_template_sha256"] = _chat_template(config.chat_template)
        extra += ["--chat-template", str(path)]
    return extra, identity


def _chat_template(path: Path) -> tuple[Path, str]:
    """Where it is, and its SHA-256."""
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
    """The whole command line. `extra` comes last; a default that it also sets is left out."""
    defaults: dict[str, tuple[str, ...]] = {
        "port": (str(port),),
        "seed": ("0",),
        # The default, `auto`, fills in what a request leaves open from the checkpoint's generation_config.json.
        "generation-config": ("vllm",),
        "enable-prefix-caching": (),
        # One line a request would bury the log of a run of some ten thousand requests.
        "disable-uvicorn-access-log": (),
    }
    if max_model_len is not None:
        defaults["max-model-len"] = (str(max_model_len),)
    if command.kind == "cpu":
        # Compiling takes the start from one minute to two to four, measured on two cores.
        defaults["enforce-eager"] = ()
        # A prompt that is read in pieces (several long ones at once) ends the engine if its reply is sampled with a
        # seed: vLLM 0.32 winds the generator back after each piece, which a CPU's cannot ("CPU Generator does not
        # use offset").
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
    """Whether this is an x86 CPU that torch has no fast bfloat16 for: it multiplies row by row, which took three
    quarters of the time of a small model."""
    flags = cpu_flags()
    return "avx2" in flags and "avx512bw" not in flags


def _fits_in_float32(model: str) -> bool:
    """Whether the model's weights, if it is here and not quantised, take at most half the memory in float32."""
    config = model_config(model)
    folder = known_folder(model)
    if config is None or folder is None or "quantization_config" in config:
        return False
    try:
        weights = check_checkpoint(folder).weight_bytes
    except CheckpointError:
        return False  # incomplete: vLLM loads the rest
    return 2 * weights <= memory_bytes() // 2


def server_environment(
    command: ServerCommand,
    *,
    local_model: bool,
    extra: Sequence[str] = (),
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """`base` (default: our own environment) plus what the server needs; what the user has set stays."""
    env = dict(os.environ if base is None else base)
    # The user's own would lock the harness out of its own server.
    env.pop("VLLM_API_KEY", None)
    env.update(command.env)
    env |= {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "PYTHONUNBUFFERED": "1"}
    # `python -m` would otherwise import whatever lies in the current folder.
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
    """KV cache of a CPU server in GiB: a quarter of the memory, 1 to 4."""
    return max(1, min(4, memory // 4 // 2**30))


def memory_bytes() -> int:
    """Memory this process may use: the machine's, or the container's limit where that is less."""
    import psutil

    total = psutil.virtual_memory().total
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text()))
        except (OSError, ValueError):
            continue
    return total
