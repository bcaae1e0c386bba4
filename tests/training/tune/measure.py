"""Run by the training environment's Python: the most bytes of tensors that live at once while a job is trained.

python -I measure.py FOLDER_OF_THE_TRAINER TOKENIZER JOB...

Each JOB holds what a job of the trainer holds, and under `shape` the sizes of a random LLaMA, which is made first.
"""

from __future__ import annotations

import json
import sys
import weakref
from pathlib import Path
from typing import Any

sys.path.append(sys.argv[1])

import torch  # type: ignore[import-not-found, unused-ignore]
import train  # type: ignore[import-not-found, unused-ignore]
from torch.utils._python_dispatch import (  # type: ignore[import-not-found, unused-ignore]
    TorchDispatchMode,
)
from torch.utils._pytree import tree_leaves  # type: ignore[import-not-found, unused-ignore]
from transformers import (  # type: ignore[import-not-found, unused-ignore]
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
)


class Living(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Counts the storage of every tensor that an operation returns, until it is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.peak = 0
        self.known: dict[int, int] = {}

    def see(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.known:
            self.known[key] = storage.nbytes()
            self.bytes += self.known[key]
            self.peak = max(self.peak, self.bytes)
            weakref.finalize(storage, self.gone, key)

    def gone(self, key: int) -> None:
        self.bytes -= self.known.pop(key, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(found):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf)
        return found


def peak(job: dict[str, Any]) -> int:
    LlamaForCausalLM(LlamaConfig(**job["shape"])).save_pretrained(job["model"])
    AutoTokenizer.from_pretrained(sys.argv[2]).save_pretrained(job["model"])
    trainer = train.make_trainer(job, train.Wish())
    living = Living()
    for parameter in trainer.model.parameters():
        living.see(parameter)
    with living:
        trainer.train()
    return living.peak


print("answer: " + json.dumps([peak(json.loads(Path(name).read_text())) for name in sys.argv[3:]]))
