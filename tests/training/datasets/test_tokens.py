"""Tokens and labels by real tokenizers: the trained spans are those of every other format."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest
from refine_conversations import clean_conversation, erring_conversation

from evalharness.cli import main
from evalharness.training.datasets.conversation import write_data
from evalharness.training.datasets.export import export
from evalharness.training.datasets.tokens import IGNORED

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

_DECODE = """
import json, sys
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1], local_files_only=True)
print(json.dumps([tokenizer.decode(ids) for ids in json.load(sys.stdin)]))
"""
_THINKING = (
    "{% for m in messages %}<|start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
    "{{ m['content'] | trim }}<|end|>\n{% endfor %}"
)
"""As Qwen3's: the last reply alone gets an empty reasoning block, so that turns cannot be rendered one by one."""
CONVERSATIONS = [erring_conversation("a"), erring_conversation("b", system=False), clean_conversation()]


@pytest.mark.parametrize("template", ["plain", "thinking"])
def test_trained_tokens_are_the_trained_turns_and_their_ends(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path, template: str
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for file in tiny_checkpoint.iterdir():
        if file.suffix != ".safetensors":
            (model / file.name).write_bytes(file.read_bytes())
    if template == "thinking":
        (model / "chat_template.jinja").write_text(_THINKING)
        config = json.loads((model / "tokenizer_config.json").read_text())
        config.pop("chat_template", None)
        (model / "tokenizer_config.json").write_text(json.dumps(config))
    data = tmp_path / "data.jsonl"
    write_data(data, CONVERSATIONS, {})
    done = export([data], "tokens", "full", tmp_path / "out", model=model, python=server_python)
    wanted = [[m.content for m in conversation.messages if m.trained] for conversation in CONVERSATIONS]
    assert done.tokens is not None
    assert not done.tokens.refused
    assert done.tokens.ended_turns == done.trained_turns == sum(map(len, wanted))
    rows = pyarrow.parquet.read_table(tmp_path / "out" / "train.parquet").to_pylist()
    runs: list[list[int]] = []
    owners: list[int] = []
    for number, row in enumerate(rows):
        assert len(row["labels"]) == len(row["input_ids"])
        before = IGNORED
        for token, label in zip(row["input_ids"], row["labels"], strict=True):
            assert label in (token, IGNORED)
            if label != IGNORED and before == IGNORED:
                runs.append([])
                owners.append(number)
            if label != IGNORED:
                runs[-1].append(token)
            before = label
    decoded = subprocess.run(
        [server_python, "-I", "-c", _DECODE, model],
        input=json.dumps(runs),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[list[str]] = [[] for _ in rows]
    for owner, text in zip(owners, json.loads(decoded.stdout), strict=True):
        assert text.endswith("<|end|>")
        found[owner].append(text.removesuffix("<|end|>"))
    assert found == wanted


def test_a_model_without_a_template_takes_one_that_shows_texts_as_they_are(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Special tokens that stand in a text are counted."""
    model, data, loud = tmp_path / "model", tmp_path / "data.jsonl", tmp_path / "loud.jinja"
    shutil.copytree(tiny_checkpoint, model, ignore=shutil.ignore_patterns("*.safetensors", "*.jinja"))
    config = model / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "chat_template": None}))
    plain = tmp_path / "plain.jinja"
    plain.write_text(_THINKING)
    loud.write_text(_THINKING.replace("trim", "upper"))
    clean = clean_conversation()
    messages = (replace(clean.messages[0], content="A <|end|> B"), *clean.messages[1:])
    write_data(data, [replace(clean, messages=messages)], {})
    words = ["refine", "export", data, "--format", "tokens", "--model", model, "-o", tmp_path / "out"]
    for more, wanted in [
        ([], "choose one with --chat-template"),
        (["--chat-template", loud], "changes texts or leaves them out; choose another --chat-template"),
    ]:
        assert main([*map(str, words), *map(str, more)]) == 2
        assert wanted in capsys.readouterr().err
    assert main([*map(str, words), "--chat-template", str(plain)]) == 0
    assert "'<|end|>' 1" in capsys.readouterr().out
