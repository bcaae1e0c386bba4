"""Turns a GGUF file into a checkpoint folder. Run by the server environment's Python, which has transformers.

python -I convert_gguf.py GGUF FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(gguf: Path, folder: Path) -> None:
    import torch  # type: ignore[import-not-found, unused-ignore]
    from transformers import (  # type: ignore[import-not-found, unused-ignore]
        AutoModelForCausalLM,
        AutoTokenizer,
        GgufConfig,
    )

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    print("reading the tokenizer", flush=True)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    print("dequantising the weights", flush=True)
    model = AutoModelForCausalLM.from_pretrained(**source, quantization_config=GgufConfig(dequantize=True))
    # What is saved is an ordinary checkpoint: nothing may say that it is quantised.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    print("writing the checkpoint", flush=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
