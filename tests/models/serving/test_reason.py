"""The reason of a failure is found in real logs (of vLLM 0.32.0, CPU) and comes with what to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.models.serving.log import hint_for, phase_of, read_max_model_len, root_cause, strip_prefix

LOGS = Path(__file__).with_name("logs")


@pytest.mark.parametrize(
    ("name", "reason", "hint"),
    [
        (
            "unknown_model_type",
            "The checkpoint you are trying to load has model type `foo`",
            "newer",
        ),
        (
            "unknown_architecture",
            "Model architectures ['FooForCausalLM'] are not supported",
            "newer",
        ),
        (
            "damaged_weights",
            "safetensors._safetensors_rust.SafetensorError: Error while",
            "damaged",
        ),
        ("weights_do_not_fit", "AssertionError", "config.json"),
        ("broken_tokenizer", "KeyError: 'added_tokens'", "tokenizer"),
        ("unknown_argument", "api_server.py: error: unrecognized arguments: --no-such-flag", "--vllm-args"),
        ("context_too_long", "User-specified max_model_len (100000) is greater", "--max-model-len N"),
        ("too_little_memory", "ValueError: Available memory on node 0", "VLLM_CPU_KVCACHE_SPACE=1"),
        (
            "hub_unreachable",
            "OSError: We couldn't connect to 'https://huggingface.co'",
            "checkpoint",
        ),
        ("worker_killed", "Worker proc VllmWorker-0 died unexpectedly", None),
        (
            "missing_template_file",
            "vllm.exceptions.VLLMValidationError: The supplied chat template string",
            None,
        ),
    ],
)
def test_reason_and_remedy_of_a_real_failure(name: str, reason: str, hint: str | None) -> None:
    lines = (LOGS / f"{name}.log").read_text().splitlines()
    found = root_cause(lines)
    assert found[0].startswith(reason)
    assert len(found) <= 4
    assert all(len(line) <= 300 and "Traceback" not in line for line in found)
    remedy = hint_for("\n".join(found))
    assert remedy is None if hint is None else hint in (remedy or "")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
            "--gpu-memory-utilization 0.8",
        ),
        ("ValueError: No available memory for the cache blocks. Try increasing ...", "--max-model-len 4096"),
        (
            "ValueError: Free memory on device (1/80 GiB) on startup is less than desired GPU memory utilization",
            "0.8",
        ),
        ("OSError: You are trying to access a gated repo.", "HF_TOKEN"),
        (
            "OSError: org/x is not a local folder and is not a valid model identifier",
            "checkpoint",
        ),
        (
            "RuntimeError: Failed to infer device type, please set the environment variable",
            "server install --cpu",
        ),
        ("ImportError: libcudart.so.12: cannot open shared object file", "server install --cpu"),
        ("OSError: [Errno 28] No space left on device", "disk space"),
        ("ValueError: Please pass the argument `trust_remote_code=True`", "--trust-remote-code"),
    ],
)
def test_remedies_of_failures_that_need_a_gpu_or_a_hub(line: str, hint: str) -> None:
    assert root_cause(["INFO something", f"(EngineCore pid=7) ERROR 01-02 03:04:05 [core.py:1] {line}"]) == [
        line
    ]
    assert hint in (hint_for(line) or "")


def test_an_innocent_log_has_no_reason() -> None:
    lines = ["INFO: ready", "a line with the word Error in it", "", "Error: not python's", "x" * 100_000]
    assert root_cause(lines) == []
    assert root_cause([]) == []


@pytest.mark.parametrize("line", ["a" * 100_000, "a-" * 50_000, "a " * 50_000, "a." * 50_000, "(" * 100_000])
@pytest.mark.timeout(20)
def test_long_lines_take_no_time(line: str) -> None:
    assert root_cause([line] * 20) == []
    assert phase_of(line) is None


def test_a_line_loses_its_process_level_and_time() -> None:
    assert (
        strip_prefix("(EngineCore_DP0 pid=12) ERROR 11-21 22:19:03 [core.py:133] ValueError: x")
        == "ValueError: x"
    )
    assert strip_prefix("INFO 11-21 22:19:03 [core.py:133] y") == "y"
    assert strip_prefix("(APIServer pid=1)   File z") == "File z"
    assert strip_prefix("plain") == "plain"


def test_phases_of_a_real_start_come_in_order() -> None:
    lines = (LOGS / "worker_killed.log").read_text().splitlines()
    phases = [phase for line in lines if (phase := phase_of(line))]
    assert list(dict.fromkeys(phases))[-1] == "starting the API"
    assert "compiling" not in phases


def test_the_models_own_limit_is_read_from_the_refusal() -> None:
    text = (LOGS / "context_too_long.log").read_text()
    assert read_max_model_len(text) == 4096
    assert read_max_model_len("nothing of the kind") is None
