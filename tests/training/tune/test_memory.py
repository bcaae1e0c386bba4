"""What a training takes, said before it starts: against what real trainings take, and for the paper's models."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.memory import MemoryUse, memory, read_shape
from evalharness.training.tune.settings import make_settings
from evalharness.training.tune.training import TRAINER

LLAMA_8B = {
    "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 128256,
}  # fmt: skip


def tiny(hidden: int, inner: int, layers: int, heads: int, key_values: int, words: int) -> dict[str, int]:
    return {
        "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": key_values, "vocab_size": words, "max_position_embeddings": 2048, "bos_token_id": 0,
        "eos_token_id": 1, "pad_token_id": 2,
    }  # fmt: skip


SIZES = {
    "small": (tiny(64, 192, 2, 2, 1, 800), 700),
    "middle": (tiny(192, 512, 5, 6, 3, 6000), 200),
    "large": (tiny(320, 896, 8, 5, 5, 3000), 250),
}
"""Others than those that the constants were taken from, and tokens of a conversation."""
WAYS: dict[str, dict[str, Any]] = {
    "all weights": {"method": "full"},
    "all weights, bfloat16": {"method": "full", "dtype": "bfloat16"},
    "all weights, bfloat16, checkpointing": {
        "method": "full",
        "dtype": "bfloat16",
        "gradient_checkpointing": True,
    },
    "LoRA, bfloat16": {"method": "lora", "dtype": "bfloat16"},
}


@pytest.mark.vllm
@pytest.mark.slow
def test_the_estimate_is_what_trainings_of_three_sizes_take(
    tuning: TuneInstall, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    """Weights, gradients, optimiser, activations and logits together, within 15 %."""
    jobs, estimated = {}, {}
    for size, (shape, tokens) in SIZES.items():
        rows = tmp_path / f"{size}.parquet"
        ids = [[3 + (7 * place + row) % 500 for place in range(tokens)] for row in range(4)]
        labels = [[-100] * (tokens // 2) + row[tokens // 2 :] for row in ids]
        pyarrow.parquet.write_table(pyarrow.table({"input_ids": ids, "labels": labels}), rows)
        for way, chosen in WAYS.items():
            given = {key: value for key, value in chosen.items() if key != "dtype"}
            settings = make_settings("small", {**given, "batch": 2, "epochs": 1.0})
            dtype = chosen.get("dtype", "float32")
            path = tmp_path / f"job {size} {way}.json"
            path.write_text(
                json.dumps(
                    {
                        **settings.to_json(), "shape": shape, "model": str(tmp_path / size), "data": str(rows),
                        "out": str(tmp_path / "out"), "dtype": dtype, "stored": "float32", "save_every": 100, "keep": 1,
                        "threads": 1, "cpu": True, "resume": None, "tokenizer_files": [],
                        "chat_template": None, "end_ids": [],
                    }
                )
            )  # fmt: skip
            jobs[size, way] = path
            use = MemoryUse(settings, tokens, tokens // 2, bf16=dtype == "bfloat16", gpu=False)
            found = memory(read_shape(shape), use)
            estimated[size, way] = found.total - found.libraries
    done = subprocess.run(
        [
            tuning.python,
            "-I",
            Path(__file__).with_name("measure.py"),
            TRAINER.parent,
            tiny_checkpoint,
            *jobs.values(),
        ],
        capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer: ")]
    assert answers, done.stderr[-3000:]
    measured = json.loads(answers[0].removeprefix("answer: "))
    off = {key: estimated[key] / peak - 1 for key, peak in zip(jobs, measured, strict=True)}
    print(*(f"{size}, {way}: {value:+.1%}" for (size, way), value in off.items()), sep="\n")
    assert max(abs(value) for value in off.values()) < 0.15, off


def dry_run(folder: Path, config: dict[str, int], *words: str) -> int:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return main(["tune", "--dry-run", "--model", str(folder), "--gpu-memory", "80", *words])


def test_an_8b_models_adapter_fits_one_gpu_and_all_its_weights_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paper = ("--preset", "paper")
    assert dry_run(tmp_path / "8b", LLAMA_8B, *paper) == 2
    assert "--method lora" in capsys.readouterr().err
    assert dry_run(tmp_path / "8b", LLAMA_8B, *paper, "--method", "lora") == 0
    said = capsys.readouterr().out
    assert "8,030 million parameters, 1 x 8,192 tokens" in said
    for part in ("weights", "gradients", "optimizer", "activations", "logits"):
        assert part in said


def test_a_config_that_does_not_say_a_number_is_named() -> None:
    for value in ([8], "many", -1, 0.5):
        with pytest.raises(UserError, match=r"config.json: num_key_value_heads"):
            read_shape({**LLAMA_8B, "num_key_value_heads": value})


def test_the_logits_of_a_large_vocabulary_do_not_decide_memory() -> None:
    """Of an 8B model: less than the optimiser, and less than one float32 copy of them all (4.2 GB)."""
    use = MemoryUse(make_settings("paper", {}), 8192, 8192, bf16=True, gpu=True)
    found = memory(read_shape(LLAMA_8B), use)
    assert found.logits < min(found.optimizer, 8192 * 128256 * 4)
