"""A folder that cannot be served is refused in one clear line before any server starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from empty_checkpoint import make_empty_checkpoint, write_safetensors

from evalharness.base.errors import UserError
from evalharness.models.serving.checkpoint import (
    CheckpointError,
    check_checkpoint,
    is_local,
    model_context_length,
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return make_empty_checkpoint(tmp_path / "model")


def shard(folder: Path) -> None:
    """Two shards and their index instead of the one file."""
    (folder / "model.safetensors").unlink()
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for name in names:
        write_safetensors(folder / name)
    index = {"weight_map": {"a": names[0], "b": names[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_a_good_checkpoint_is_described(checkpoint: Path) -> None:
    info = check_checkpoint(checkpoint)
    assert info.architecture == "LlamaForCausalLM"
    assert info.max_position_embeddings == 4096
    assert info.has_chat_template is True
    assert info.weight_files == ("model.safetensors",)
    assert info.weight_bytes == (checkpoint / "model.safetensors").stat().st_size


def test_shards_are_counted_and_the_training_leftovers_are_not(checkpoint: Path) -> None:
    shard(checkpoint)
    for name in ("training_args.bin", "optimizer.pt"):
        (checkpoint / name).write_bytes(b"x")
    assert len(check_checkpoint(checkpoint).weight_files) == 2


def unlink(*names: str) -> Callable[[Path], None]:
    return lambda folder: [(folder / name).unlink() for name in names] and None


def write(name: str, text: str | bytes) -> Callable[[Path], None]:
    data = text.encode() if isinstance(text, str) else text
    return lambda folder: (folder / name).write_bytes(data) and None


def cut_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-3])


def header(text: bytes) -> Callable[[Path], None]:
    return write("model.safetensors", len(text).to_bytes(8, "little") + text + bytes(8))


def lose_a_shard(folder: Path) -> None:
    shard(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def make_adapter(folder: Path) -> None:
    for entry in folder.iterdir():
        entry.unlink()
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "org/base"}))
    write_safetensors(folder / "adapter_model.safetensors")


def nest(folder: Path) -> None:
    inner = folder / "checkpoint-500"
    inner.mkdir()
    for entry in [entry for entry in folder.iterdir() if entry != inner]:
        entry.rename(inner / entry.name)


def empty(folder: Path) -> None:
    for entry in folder.iterdir():
        entry.unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (unlink("config.json"), "no config.json"),
        (write("config.json", '{"architectures": ['), "not valid JSON"),
        (write("config.json", "[]"), "not a JSON object"),
        (write("config.json", b"\xff\xfe\x00"), "not valid JSON"),
        (write("config.json", "{}"), "architectures"),
        (unlink("model.safetensors"), "no weights"),
        (unlink("tokenizer.json"), "no tokenizer"),
        (cut_short, "cut short"),
        (write("model.safetensors", b""), "cut short"),
        (write("model.safetensors", b"\xff" * 40), "cut short"),
        (
            header(b'{"w": {"dtype": "F32", "shaqe": [2], "data_offsets": [0, 8]}}'),
            "header",
        ),
        (write("model.safetensors", "version https://git-lfs.github.com/spec/v1\n"), "git lfs pull"),
        (write("model.safetensors.index.json", '{"weight_map": {"a": [1]}}'), r"\[1\]"),
        (lose_a_shard, "model-00002-of-00002.safetensors"),
        (make_adapter, "LoRA adapter of org/base.*--model BASE --lora"),
        (nest, "give .*checkpoint-500"),
        (empty, "is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_said_in_one_line(
    checkpoint: Path, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(checkpoint)
    with pytest.raises(CheckpointError, match=words) as caught:
        check_checkpoint(checkpoint)
    assert "\n" not in str(caught.value)
    assert str(checkpoint) in str(caught.value)
    assert isinstance(caught.value, UserError)


def test_a_missing_folder_a_file_and_a_gguf_are_told_apart(checkpoint: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        check_checkpoint(checkpoint / "nowhere")
    with pytest.raises(CheckpointError, match="give the folder"):
        check_checkpoint(checkpoint / "config.json")
    (checkpoint / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(CheckpointError, match="is a GGUF file"):
        check_checkpoint(checkpoint / "model.gguf")


def test_the_identity_does_not_depend_on_the_place_but_on_every_byte_that_counts(
    checkpoint: Path, tmp_path: Path
) -> None:
    first = check_checkpoint(checkpoint).identity
    moved = tmp_path / "elsewhere"
    checkpoint.rename(moved)
    (moved / "README.md").write_text("says nothing about the model")
    assert check_checkpoint(moved).identity == first
    write_safetensors(moved / "model.safetensors", b"\1" * 8)
    other_weights = check_checkpoint(moved).identity
    (moved / "chat_template.jinja").write_text("{{ messages }}")
    other_template = check_checkpoint(moved).identity
    assert len({first, other_weights, other_template}) == 3


@pytest.mark.parametrize(
    ("config", "tokenizer", "length"),
    [
        ({"max_position_embeddings": 2048}, {}, 2048),
        ({"n_positions": 1024}, {}, 1024),
        ({"max_position_embeddings": 131072}, {"model_max_length": 4096}, 4096),
        ({"max_position_embeddings": 2048}, {"model_max_length": 1e30}, 2048),
        ({"text_config": {"max_position_embeddings": 512}}, {}, 512),
        ({}, {}, None),
    ],
)
def test_context_length_is_the_smallest_that_the_checkpoint_states(
    tmp_path: Path, config: dict[str, object], tokenizer: dict[str, object], length: int | None
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert model_context_length(tmp_path) == length


@pytest.mark.parametrize("stated", ["Infinity", "-Infinity", "NaN", "1e30", "-1", '"long"'])
def test_a_tokenizer_that_states_no_length_leaves_that_of_the_model(checkpoint: Path, stated: str) -> None:
    known = check_checkpoint(checkpoint).max_position_embeddings
    (checkpoint / "tokenizer_config.json").write_text(
        f'{{"model_max_length": {stated}, "chat_template": "x"}}'
    )
    assert check_checkpoint(checkpoint).max_position_embeddings == known


def test_context_length_of_a_hub_id_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert model_context_length("org/name") is None
    repository = tmp_path / "hub" / "models--org--name"
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc" / "config.json").write_text('{"max_position_embeddings": 2048}')
    assert model_context_length("org/name") == 2048


@pytest.mark.parametrize(
    ("files", "config", "found"),
    [
        ({"chat_template.jinja": "x"}, {}, True),
        ({"tekken.json": "{}"}, {}, None),
        ({}, {"vision_config": {}}, None),
        ({}, {}, False),
    ],
)
def test_a_missing_chat_template_is_only_claimed_where_vllm_brings_none(
    checkpoint: Path, files: dict[str, str], config: dict[str, object], found: bool | None
) -> None:
    (checkpoint / "tokenizer_config.json").write_text("{}")
    for name, text in files.items():
        (checkpoint / name).write_text(text)
    (checkpoint / "config.json").write_text(json.dumps({"model_type": "llama"} | config))
    assert check_checkpoint(checkpoint).has_chat_template is found


def test_what_counts_as_a_local_path(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkpoint.parent)
    assert is_local("model")
    assert is_local("./not-there-yet")
    assert is_local("/not/there")
    assert not is_local("org/name")


def test_weights_too_big_to_hash_whole_are_told_apart_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A training run writes over its checkpoint: same names, same sizes, other weights."""
    from evalharness.models.serving import checkpoint

    monkeypatch.setattr(checkpoint, "FULL_HASH_BYTES", 0)
    path = tmp_path / "model.safetensors"
    identities = []
    for value in (b"\x01", b"\x01", b"\x02"):
        path.write_bytes(value * 3_000_000)
        info = checkpoint.CheckpointInfo(tmp_path, "Llama", 4096, True, (path.name,), 3_000_000)
        identities.append(info.identity)
    assert identities[0] == identities[1] != identities[2]
