"""What a trained folder holds in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalharness.training.tune.trainer.saving import tidy


@pytest.mark.parametrize(("name", "said"), [("demo-base", "demo-base"), (None, "/here/cache/base")])
def test_an_adapter_of_demo_base_names_it_as_every_machine_knows_it(
    name: str | None, said: str, tmp_path: Path
) -> None:
    config = tmp_path / "adapter_config.json"
    config.write_text(json.dumps({"r": 4, "base_model_name_or_path": "/here/cache/base"}))
    (tmp_path / "tokenizer.json").write_text("{}")
    job = {"base_name": name, "tokenizer_files": ["tokenizer.json"], "method": "lora", "chat_template": None}
    tidy(tmp_path, job)
    assert json.loads(config.read_text()) == {"r": 4, "base_model_name_or_path": said}
    assert not (tmp_path / "tokenizer.json").exists()
