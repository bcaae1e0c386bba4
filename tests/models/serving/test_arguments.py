"""The server's command line: our defaults once, the user's own words last, nothing that takes it off loopback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.base.machine import core_numbers, share_in_use
from evalharness.models.serving.arguments import (
    check_extra_arguments,
    cpu_cache_gib,
    option_names,
    option_value,
    server_arguments,
    server_environment,
)
from evalharness.models.serving.find import ServerCommand

CPU = ServerCommand(
    ("/env/bin/python", "-m", "vllm.entrypoints.openai.api_server"),
    "private environment",
    Path("/env"),
    "cpu",
    "0.32.0",
    Path("/env/bin/python"),
    env={"VLLM_TARGET_DEVICE": "cpu"},
)
GPU = ServerCommand(
    ("/env/bin/vllm", "serve"), "PATH", Path("/env/bin/vllm"), "gpu", "0.32.0", None, model_flag=()
)


def arguments(command: ServerCommand = CPU, *extra: str, context: int | None = 8192) -> list[str]:
    return server_arguments(
        command, model="/m", served_name="n", port=8000, max_model_len=context, extra=list(extra)
    )


@pytest.fixture(autouse=True)
def fast_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalharness.models.serving.arguments.cpu_flags", lambda: {"avx2", "avx512bw"})


def test_defaults_of_the_cpu_build() -> None:
    assert arguments() == [
        *CPU.argv,
        *(
            "--model",
            "/m",
            "--served-model-name",
            "n",
            "--host",
            "127.0.0.1",
            "--port",
            "8000",
            "--seed",
            "0",
            "--generation-config",
            "vllm",
        ),
        *(
            "--enable-prefix-caching",
            "--disable-uvicorn-access-log",
            "--max-model-len",
            "8192",
            "--enforce-eager",
            "--no-enable-chunked-prefill",
        ),
    ]


@pytest.mark.parametrize(
    ("config", "weights", "float32"),
    [
        ({"dtype": "bfloat16"}, 1000, True),
        ({"quantization_config": {"bits": 4}}, 1000, False),
        ({}, 2_000_000, False),
    ],
    ids=["small", "quantised", "too big in float32"],
)
def test_a_cpu_without_avx512_computes_in_float32_what_fits(
    config: dict[str, object], weights: int, float32: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], **config}))
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(weights * b"x")
    monkeypatch.setattr("evalharness.models.serving.arguments.memory_bytes", lambda: 4_000_000)

    def words(command: ServerCommand, *extra: str) -> list[str]:
        return server_arguments(
            command, model=str(tmp_path), served_name="n", port=8000, max_model_len=8192, extra=extra
        )

    assert not {"--dtype", "--block-size"} & set(words(CPU))
    monkeypatch.setattr("evalharness.models.serving.arguments.cpu_flags", lambda: {"avx2"})
    assert not {"--dtype", "--block-size"} & set(words(GPU))
    assert option_value(words(CPU), "block-size") == "32"
    assert option_value(words(CPU), "dtype") == ("float32" if float32 else None)
    assert words(CPU, "--dtype=bfloat16").count("--dtype") == 0


def test_on_a_gpu_the_model_is_positional_and_compilation_stays_on() -> None:
    argv = arguments(GPU)
    assert argv[:3] == ["/env/bin/vllm", "serve", "/m"]
    assert "--model" not in argv
    assert "--enforce-eager" not in argv


@pytest.mark.parametrize(
    ("extra", "ours"),
    [
        (["--max-model-len", "4096"], "--max-model-len"),
        (["--max_model_len=4096"], "--max-model-len"),
        (["--no-enable-prefix-caching"], "--enable-prefix-caching"),
        (["--seed=7"], "--seed"),
        (["--no-enforce-eager"], "--enforce-eager"),
        (["--port", "9"], "--port"),
    ],
)
def test_a_default_that_the_user_sets_is_not_given_twice(extra: list[str], ours: str) -> None:
    argv = arguments(CPU, *extra)
    assert argv[-len(extra) :] == extra
    assert ours not in argv[: -len(extra)]


@pytest.mark.parametrize(
    "extra",
    [
        ["--host", "0.0.0.0"],
        ["--host=::"],
        ["--model", "x"],
        ["--served_model_name", "x"],
        ["--api-key", "k"],
    ],
)
def test_what_would_take_the_server_out_of_our_hands_is_refused(extra: list[str]) -> None:
    with pytest.raises(UserError, match=r"^--vllm-args: --\S+ "):
        check_extra_arguments(extra)


def test_options_are_read_as_vllm_reads_them() -> None:
    words = ["--a_b=1", "--c", "--d", "-x", "--no-e", "--a-b", "2"]
    assert option_names(words) == {"a-b", "c", "d", "e"}
    assert option_value(words, "a-b") == "2"
    assert option_value(words, "z") is None


def test_the_environment_is_offline_for_a_local_model_and_never_reports_usage() -> None:
    env = server_environment(CPU, local_model=True, base={"VLLM_API_KEY": "k", "HF_TOKEN": "t"})
    assert "VLLM_API_KEY" not in env
    assert env["HF_TOKEN"] == "t"
    assert env["HF_HUB_OFFLINE"] == env["VLLM_NO_USAGE_STATS"] == env["DO_NOT_TRACK"] == "1"
    assert env["VLLM_TARGET_DEVICE"] == "cpu"
    assert env["VLLM_HOST_IP"] == "127.0.0.1"
    assert 1 <= int(env["VLLM_CPU_KVCACHE_SPACE"]) <= 4
    assert "HF_HUB_OFFLINE" not in server_environment(GPU, local_model=False, base={})
    assert "VLLM_CPU_KVCACHE_SPACE" not in server_environment(GPU, local_model=False, base={})


def test_on_few_cores_a_server_on_the_cpu_computes_on_all_of_them_in_one_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stated(cores: list[int], command: ServerCommand = CPU, **base: str) -> dict[str, str]:
        monkeypatch.setattr("evalharness.models.serving.arguments.core_numbers", lambda: cores)
        env = server_environment(command, local_model=True, base=base)
        names = ("VLLM_CPU_OMP_THREADS_BIND", "VLLM_ENABLE_V1_MULTIPROCESSING", "OMP_NUM_THREADS")
        return {name: env[name] for name in names if name in env}

    own = {"VLLM_CPU_OMP_THREADS_BIND": "0,1"}
    one_process = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "OMP_NUM_THREADS": "2"}
    assert stated([0, 1]) == own | one_process
    kept = {"VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    assert stated([0, 1], **kept) == own | kept
    auto = {"VLLM_CPU_OMP_THREADS_BIND": "auto"}
    assert stated([0, 1], **auto) == auto
    assert stated(list(range(16))) == {}
    assert stated([0, 1], GPU) == {}


def test_beside_other_work_a_server_on_the_cpu_waits_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(used: float, command: ServerCommand = CPU, **base: str) -> dict[str, str]:
        monkeypatch.setattr("evalharness.models.serving.arguments.core_numbers", lambda: [0, 1])
        monkeypatch.setattr("evalharness.models.serving.arguments.share_in_use", lambda cores: used)
        env = server_environment(command, local_model=True, base=base)
        return {name: env[name] for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT") if name in env}

    assert waits(0.1) == {}
    assert waits(0.5) == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
    assert waits(0.5, OMP_WAIT_POLICY="ACTIVE") == {"OMP_WAIT_POLICY": "ACTIVE"}
    assert waits(0.5, GPU) == {}


def test_the_share_of_cores_in_use_is_a_share() -> None:
    assert 0 <= share_in_use(core_numbers(), 0.05) <= 1
    assert share_in_use([10_000], 0.05) == 0  # a core that is not shown


def test_what_the_user_set_in_the_environment_stays() -> None:
    base = {"HF_HUB_OFFLINE": "0", "VLLM_CPU_KVCACHE_SPACE": "9", "VLLM_HOST_IP": "192.0.2.1"}
    env = server_environment(CPU, local_model=True, base=base)
    assert {key: env[key] for key in base} == base


def test_an_explicit_cache_size_is_not_overruled() -> None:
    env = server_environment(CPU, local_model=True, extra=["--kv-cache-memory-bytes", "1G"], base={})
    assert "VLLM_CPU_KVCACHE_SPACE" not in env


def test_several_machines_get_no_loopback_address() -> None:
    assert "VLLM_HOST_IP" not in server_environment(GPU, local_model=True, extra=["--nnodes", "2"], base={})


@pytest.mark.parametrize(("memory", "cache"), [(2, 1), (8, 2), (16, 4), (512, 4)])
def test_the_cpu_cache_is_a_quarter_of_memory_within_bounds(memory: int, cache: int) -> None:
    assert cpu_cache_gib(memory * 2**30) == cache
