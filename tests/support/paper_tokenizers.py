"""Tokenizers of the paper's models, as folders that transformers loads: LLaMA 3's from the package `llama-models`,
Mistral's from `mistral-common`, which the server's environment has."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from evalharness.models.serving.checkpoint import TOKENIZER_FILES
from evalharness.models.serving.demo import ensure_demo

MISTRAL = {
    "mistral-v1": "tokenizer.model.v1",
    "mistral-v2": "mistral_instruct_tokenizer_240216.model.v2",
    "mistral-v3": "mistral_instruct_tokenizer_240323.model.v3",
    "mistral-v7": "mistral_instruct_tokenizer_241114.model.v7",
    "tekken": "tekken_240911.json",
}
"""The first is LLaMA 2's, too, but for its size."""
SMOLLM2 = "smollm2"
"""The demo model's: a byte-level one, made for chatml."""
NAMES = ("llama3", *MISTRAL, SMOLLM2)

# Runs in the server's environment.
_MAKE = r"""
import json, sys
from pathlib import Path
kind, source, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
if kind == "llama3":
    from transformers import PreTrainedTokenizerFast
    from transformers.convert_slow_tokenizer import TikTokenConverter
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
             "<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
             "<|eot_id|>", "<|python_tag|>"]
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    made = TikTokenConverter(vocab_file=source, pattern=pattern, extra_special_tokens=names).converted()
    fast = PreTrainedTokenizerFast(tokenizer_object=made, bos_token=names[0], eos_token=names[1], pad_token=names[4])
elif kind == "tekken":
    from transformers import PreTrainedTokenizerFast
    from transformers.integrations.mistral import convert_tekken_tokenizer
    made = convert_tekken_tokenizer(source)._tokenizer
    fast = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>")
else:
    import shutil
    from transformers import LlamaTokenizerFast
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / "tokenizer.model")
    fast = LlamaTokenizerFast.from_pretrained(str(folder))
    fast.chat_template = None
fast.save_pretrained(folder)
"""


def _source(name: str, python: Path, cache: Path) -> Path:
    if name != "llama3":
        asked = "import mistral_common; print(mistral_common.__path__[0])"
        found = subprocess.run([python, "-I", "-c", asked], capture_output=True, text=True, check=False)
        path = Path(found.stdout.strip(), "data", MISTRAL[name])
        if found.returncode or not path.is_file():
            pytest.skip(f"the server's environment has no mistral-common with {MISTRAL[name]}")
        return path
    member = "llama_models/llama3/tokenizer.model"
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-q", "-d", cache]
    got = subprocess.run([*map(str, pip), "llama-models==0.3.0"], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(
            f"LLaMA 3's tokenizer comes from the package llama-models, which cannot be had: {got.stderr[-200:]}"
        )
    with zipfile.ZipFile(next(cache.glob("llama_models-*.whl"))) as wheel:
        return Path(wheel.extract(member, cache))


def make_tokenizer(name: str, python: Path, folder: Path) -> Path:
    """Write the tokenizer `name` into `folder`. Skips the test where it cannot be had."""
    if name == SMOLLM2:
        model = ensure_demo(print, python)
        folder.mkdir(parents=True)
        for file in TOKENIZER_FILES:
            if (model / file).is_file() and file != "chat_template.jinja":
                shutil.copyfile(model / file, folder / file)
        return folder
    cache = folder.with_name(f"{folder.name}-source")
    cache.mkdir(parents=True, exist_ok=True)
    source = _source(name, python, cache)
    subprocess.run(
        [python, "-I", "-c", _MAKE, name, source, folder], check=True, capture_output=True, text=True
    )
    return folder
