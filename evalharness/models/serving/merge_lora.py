"""Merge a LoRA adapter into its base. The server environment's Python runs it: it has transformers and peft.

python -I merge_lora.py BASE ADAPTER FOLDER DTYPE
"""

from __future__ import annotations

import sys
from pathlib import Path

NO_PEFT = 5
"""Exit status if peft is missing."""


def main(base: Path, adapter: Path, folder: Path, dtype: str) -> None:
    try:
        from peft import PeftModel  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        sys.exit(NO_PEFT)
    import torch  # type: ignore[import-not-found, unused-ignore]
    from transformers import AutoModelForCausalLM  # type: ignore[import-not-found, unused-ignore]

    print("reading the base model", flush=True)
    # In float32, so that each weight is rounded only once: after the sum, to the base's data type.
    model = AutoModelForCausalLM.from_pretrained(str(base), dtype=torch.float32)
    print("merging the adapter", flush=True)
    merged = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload(safe_merge=True)
    print("writing the merged model", flush=True)
    merged.to(getattr(torch, dtype)).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
