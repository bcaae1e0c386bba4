"""What a trainer itself makes of an export: token ids and labels. Run by the training environment's Python.

    python -I trainer_labels.py TRAINER OVERLAY MODEL EXPORT

TRAINER is axolotl, ms-swift or llamafactory; OVERLAY holds the package without what the environment has already. One
line of JSON a conversation: {"id", "input_ids", "labels"}; before them one with what the trainer takes as settings.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

trainer, overlay, model, folder = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "DISABLE_VERSION_CHECK": "1",
    "MODELSCOPE_CACHE": str(Path(overlay, "cache")),
}
sys.path.append(overlay)
records = [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def say(value: dict[str, Any]) -> None:
    print("answer: " + json.dumps(value))


def of_axolotl() -> Any:
    import yaml
    from axolotl.prompt_strategies.chat_template import load
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig
    from transformers import AutoTokenizer

    settings = yaml.safe_load((folder / "axolotl.yaml").read_text())
    say({"settings": sorted(AxolotlInputConfig(**settings).model_dump(exclude_none=True))})
    cfg = DictDefault({"sequence_len": settings["sequence_len"], "train_on_inputs": False})
    tokenizer = AutoTokenizer.from_pretrained(model)
    return load(tokenizer, cfg, DictDefault(settings["datasets"][0])).tokenize_prompt


def of_swift() -> Any:
    from swift.model import get_processor
    from swift.template import get_template

    processor = get_processor(model, model_type="llama", template_type="chatml")
    template = get_template(processor, template_type="chatml", template_backend="swift")
    template.set_mode("train")
    return template.encode


def of_llamafactory() -> Any:
    from llamafactory.v1.config.arg_parser import get_args
    from llamafactory.v1.core.utils.rendering import Renderer
    from transformers import AutoTokenizer

    sys.argv = ["sft", str(folder / "llamafactory.yaml")]
    _, data, training, _ = get_args()
    say(
        {
            "settings": [
                training.global_batch_size,
                training.learning_rate,
                training.cutoff_len,
                data.train_dataset,
            ]
        }
    )
    renderer = Renderer("chatml", AutoTokenizer.from_pretrained(model))
    return lambda record: renderer.process_samples([record])[0]


encode = {"axolotl": of_axolotl, "ms-swift": of_swift, "llamafactory": of_llamafactory}[trainer]()
for record in records:
    row = encode(dict(record))
    say({"id": record["id"], "input_ids": list(row["input_ids"]), "labels": list(row["labels"])})
