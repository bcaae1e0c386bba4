"""A base model under a tokenizer of the paper's: tuned with a chat template given, and whole in what servers read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paper_tokenizers import make_tokenizer
from refine_conversations import clean_conversation, erring_conversation

from evalharness.base.errors import UserError
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.training.datasets.conversation import write_data
from evalharness.training.tune.install import TuneInstall
from evalharness.training.tune.settings import choose_base_template, make_settings

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

_WEIGHTS = """
import sys, torch, transformers
from transformers import AutoTokenizer
folder, kind = sys.argv[1:]
size = len(AutoTokenizer.from_pretrained(folder, local_files_only=True))
torch.manual_seed(0)
config = getattr(transformers, kind + "Config")(
    vocab_size=size, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, max_position_embeddings=8192, bos_token_id=None, eos_token_id=None,
)
getattr(transformers, kind + "ForCausalLM")(config).to(torch.bfloat16).save_pretrained(folder)
"""


@pytest.mark.parametrize(
    ("name", "kind", "template", "end"),
    [("llama3", "Llama", "llama3", "<|eot_id|>"), ("mistral-v3", "Mistral", "mistral", "</s>")],
)
def test_a_base_model_is_tuned_with_the_template_of_its_vocabulary(
    name: str, kind: str, template: str, end: str, server_python: Path, tuning: TuneInstall, tmp_path: Path
) -> None:
    base = make_tokenizer(name, server_python, tmp_path / name)
    subprocess.run([server_python, "-I", "-c", _WEIGHTS, base, kind], check=True, capture_output=True)
    assert check_checkpoint(base).has_chat_template is False
    data, out = tmp_path / "data.jsonl", tmp_path / "out"
    write_data(data, [erring_conversation("a"), clean_conversation("b")], {})
    words = [
        "--model",
        base,
        "--data",
        data,
        "-o",
        out,
        "--preset",
        "paper",
        "--batch",
        "2",
        "--max-steps",
        "2",
    ]
    for more in (["--dry-run"], []):
        done = subprocess.run(
            [sys.executable, "-m", "evalharness", "tune", *map(str, words), "--cpu", *more],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert f"chat template: {template}" in done.stdout
    found = check_checkpoint(out)
    assert found.has_chat_template
    assert json.loads((out / "tokenizer_config.json").read_text())["eos_token"] == end
    assert json.loads((out / "generation_config.json").read_text())["eos_token_id"]


def test_a_vocabulary_for_no_template_is_refused(tiny_checkpoint: Path, tmp_path: Path) -> None:
    for file in tiny_checkpoint.iterdir():
        if file.name != "chat_template.jinja":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(UserError, match=r"--chat-template llama3\|mistral\|chatml\|FILE"):
        choose_base_template(make_settings("paper", {}), tmp_path, "paper")
