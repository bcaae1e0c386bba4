"""`--deterministic` and `--data-parallel-size`: what the device and the model allow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.config import RunConfig
from evalharness.models.resolve import prepare
from evalharness.models.serving.placement import batch_invariance, compute_capabilities, data_parallel_doubt


def nvidia_smi(folder: Path, *capabilities: str) -> dict[str, str]:
    """An environment whose `nvidia-smi` shows GPUs of these capabilities, those that `--id=` asks for."""
    folder.mkdir()
    program = folder / "nvidia-smi"
    lines = "\n".join(f'case ",$ids," in *,{i},*) echo {c};; esac' for i, c in enumerate(capabilities))
    everything = ",".join(map(str, range(len(capabilities))))
    program.write_text(
        f'#!/bin/sh\nids={everything}\nfor word; do case "$word" in --id=*) ids=${{word#--id=}};; esac; done\n{lines}\n'
    )
    program.chmod(0o755)
    return {"PATH": str(folder)}


def test_the_gpus_that_a_server_may_see_decide(tmp_path: Path) -> None:
    shown = nvidia_smi(tmp_path / "bin", "9.0", "7.5")
    assert compute_capabilities(shown) == [9.0, 7.5]
    assert compute_capabilities({**shown, "CUDA_VISIBLE_DEVICES": "0"}) == [9.0]
    assert compute_capabilities({**shown, "CUDA_VISIBLE_DEVICES": ""}) == []
    assert compute_capabilities({"PATH": str(tmp_path)}) == []


def test_a_device_that_can_gets_the_variable_and_others_a_reason() -> None:
    assert batch_invariance("gpu", [9.0, 8.0]) == {"VLLM_BATCH_INVARIANT": "1"}
    with pytest.raises(UserError, match=r"needs compute capability 8.0, and a GPU here has 7.5"):
        batch_invariance("gpu", [9.0, 7.5])
    with pytest.raises(UserError, match="nvidia-smi shows none"):
        batch_invariance("gpu", [])
    with pytest.raises(UserError, match="--concurrency 1"):
        batch_invariance("cpu", [])


def test_a_run_for_a_cpu_server_is_refused_before_anything_starts(
    cpu_environment: Path, tmp_path: Path, home: Path
) -> None:
    from empty_checkpoint import make_empty_checkpoint

    checkpoint = make_empty_checkpoint(tmp_path / "ckpt")
    config = RunConfig.of(model=str(checkpoint), vllm=str(cpu_environment), deterministic=True)
    with pytest.raises(UserError, match="vLLM for CPU has no batch-invariant kernels"):
        prepare(config.policy, {}, lambda text: None)


def test_it_is_part_of_what_a_run_is() -> None:
    plain, alike = RunConfig.of(model="ckpt"), RunConfig.of(model="ckpt", deterministic=True)
    assert alike.identity()["deterministic"] is True
    assert "deterministic" not in plain.identity()
    assert plain.folder() != alike.folder()
    with pytest.raises(UserError, match="start your own with VLLM_BATCH_INVARIANT=1"):
        RunConfig.of(model="http://127.0.0.1:1/v1", deterministic=True)


@pytest.mark.parametrize(
    ("config", "arguments", "warned"),
    [
        ({}, ["--data-parallel-size", "4"], True),
        ({}, ["-dp", "4"], True),
        ({}, ["--data-parallel-size=1"], False),
        ({}, ["--tensor-parallel-size", "4"], False),
        ({"num_local_experts": 8}, ["--data-parallel-size", "4"], False),
        ({"text_config": {"n_routed_experts": 64}}, ["--data-parallel-size", "4"], False),
    ],
)
def test_a_dense_model_on_parallel_engines_is_better_off_with_replicas(
    tmp_path: Path, config: dict[str, object], arguments: list[str], warned: bool
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    doubt = data_parallel_doubt(str(tmp_path), arguments)
    assert (doubt is not None) == warned
    assert doubt is None or "--replicas 4" in doubt


def test_nothing_is_said_of_a_model_that_is_not_at_hand(home: Path) -> None:
    assert data_parallel_doubt("org/unknown", ["--data-parallel-size", "4"]) is None
