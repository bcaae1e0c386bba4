"""Convert a GGUF file to a checkpoint folder. The server environment's Python runs it, since it has transformers.

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
    # The saved checkpoint is not quantised, so its configuration must not say so.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    print("writing the checkpoint", flush=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
