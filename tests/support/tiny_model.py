"""A tiny random Llama that the real vLLM serves: made in seconds by the server environment's own Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

# Runs in the server's environment, where torch, transformers and tokenizers are.
_MAKE = """
import sys
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

folder, positions = sys.argv[1], int(sys.argv[2])
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(
    vocab_size=512,
    special_tokens=["<|start|>", "<|end|>", "<|pad|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False,
)
sentences = [
    "Thought: I should look around the room first.",
    "Action: go to the red box in front of you.",
    "Observation: the fridge is closed. You see a mug, a plate and an apple.",
    "Your task is to put a clean mug in the coffee machine.",
]
tokenizer.train_from_iterator(sentences, trainer)
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, bos_token="<|start|>", eos_token="<|end|>", pad_token="<|pad|>"
)
fast.chat_template = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\\n{{ m['content'] }}<|end|>\\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\\n{% endif %}"
)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(fast),
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    # Heads of 32: the CPU build has no attention kernel for 16, and only the first request would show it.
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=positions,
    bos_token_id=fast.bos_token_id,
    eos_token_id=fast.eos_token_id,
    pad_token_id=fast.pad_token_id,
)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
fast.save_pretrained(folder)
"""


def make_tiny_checkpoint(folder: Path, server_python: Path, *, positions: int = 4096) -> Path:
    """Write the checkpoint into `folder`; the same bytes every time. About fifteen seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [server_python, "-I", "-c", _MAKE, folder, str(positions)],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return folder
