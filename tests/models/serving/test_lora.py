"""LoRA adapters: whole or broken, fitting or foreign, by the headers of their files; merged exactly; served."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from adapters import make_adapter, matrices, read_tensors, write_tensors
from command_line import evalharness, run_compass
from empty_checkpoint import make_empty_checkpoint

from evalharness.base.errors import UserError
from evalharness.config import PolicyConfig, RunConfig
from evalharness.models.resolve import prepare
from evalharness.models.serving import merged as merging
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.models.serving.lora import Adapter, check_adapter, check_fits, find_base, require_servable
from evalharness.models.serving.merged import MergeError, ensure_merged
from evalharness.records.store import read_episodes

from .environments import make_environment
from .shared_vllm import SharedVllm

Q, DOWN = "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"
MODULES = {Q: (6, 4), DOWN: (4, 8)}
"""Wider than high, and higher than wide: a transposed check would not pass."""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model folder whose weights have names and shapes, and mean nothing."""
    folder = make_empty_checkpoint(tmp_path / "base")
    weights = {f"{module}.weight": np.zeros(shape, np.float32) for module, shape in MODULES.items()}
    write_tensors(folder / "model.safetensors", weights)
    return folder


def adapter_of(folder: Path, base: object = None, rank: int = 2, **settings: object) -> Adapter:
    return check_adapter(make_adapter(folder, matrices(MODULES, rank), rank=rank, base=base, **settings))


def test_an_adapter_that_fits_its_base(base: Path, tmp_path: Path) -> None:
    adapter = adapter_of(tmp_path / "checkpoint-10", base)
    check_fits(adapter, check_checkpoint(base))
    require_servable(adapter, check_checkpoint(base))
    assert (adapter.rank, adapter.max_rank, find_base(adapter)) == (2, 8, base)


def test_a_base_of_another_shape_is_refused_with_both_shapes(base: Path, tmp_path: Path) -> None:
    adapter = adapter_of(tmp_path / "a", "org/other")
    weights = {f"{Q}.weight": np.zeros((4, 6), np.float32), f"{DOWN}.weight": np.zeros((4, 8), np.float32)}
    write_tensors(base / "model.safetensors", weights)
    with pytest.raises(UserError, match=r"q_proj\.weight is 4 x 6 .*6 x 4.*org/other"):
        check_fits(adapter, check_checkpoint(base))


def test_a_base_without_the_layer_is_another_model(base: Path, tmp_path: Path) -> None:
    deep = {"model.layers.7.self_attn.q_proj": (6, 4)}
    adapter = check_adapter(make_adapter(tmp_path / "a", matrices(deep, 2), rank=2))
    with pytest.raises(UserError, match=r"model\.layers\.7"):
        check_fits(adapter, check_checkpoint(base))


def test_the_rank_of_the_matrices_is_that_of_the_configuration(tmp_path: Path) -> None:
    folder = make_adapter(tmp_path / "a", matrices(MODULES, 4), rank=2)
    with pytest.raises(UserError, match=r"rank 2, .*rank 4"):
        check_adapter(folder)
    mixed = matrices({Q: (6, 4)}, 2) | matrices({DOWN: (4, 8)}, 4)
    folder = make_adapter(tmp_path / "b", mixed, rank=2, rank_pattern={"down_proj": 4})
    assert check_adapter(folder).rank == 4


def test_matrices_that_are_no_pair_are_refused(base: Path, tmp_path: Path) -> None:
    tensors = matrices(MODULES, 2)
    del tensors[f"base_model.model.{Q}.lora_B.weight"]
    adapter = check_adapter(make_adapter(tmp_path / "a", tensors, rank=2))
    with pytest.raises(UserError, match=r"different ranks"):
        check_fits(adapter, check_checkpoint(base))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"peft_type": "IA3"}, "type 'IA3'"), ({"r": None}, "says rank None"), ({"r": [2]}, r"says rank \[2\]")],
)
def test_what_is_no_lora_adapter_is_refused(
    tmp_path: Path, settings: dict[str, object], complaint: str
) -> None:
    folder = make_adapter(tmp_path / "a", matrices(MODULES, 2), rank=2)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | settings))
    with pytest.raises(UserError, match=complaint):
        check_adapter(folder)


def test_a_folder_without_weights_or_with_half_of_them_is_refused(tmp_path: Path) -> None:
    folder = make_adapter(tmp_path / "a", matrices(MODULES, 2), rank=2)
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    with pytest.raises(UserError, match=r"cut short"):
        check_adapter(folder)
    weights.unlink()
    with pytest.raises(UserError, match=r"has no adapter_model.safetensors"):
        check_adapter(folder)
    with pytest.raises(UserError, match=r"no such folder"):
        check_adapter(tmp_path / "nowhere")


def test_the_identity_is_of_the_weights_and_not_of_the_place(tmp_path: Path) -> None:
    first = adapter_of(tmp_path / "a", "/some/base")
    moved = adapter_of(tmp_path / "b", "org/base")
    other = check_adapter(make_adapter(tmp_path / "c", matrices(MODULES, 2, seed=1), rank=2))
    scaled = adapter_of(tmp_path / "d", lora_alpha=16)
    assert first.identity == moved.identity
    assert len({first.identity, other.identity, scaled.identity}) == 3


def test_an_adapter_alone_finds_its_base_in_the_hub_cache_or_says_what_to_give(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-home"))
    adapter = adapter_of(tmp_path / "a", "org/base")
    with pytest.raises(UserError, match=r"org/base.*--lora"):
        find_base(adapter)
    repository = tmp_path / "hub-home" / "hub" / "models--org--base"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    shutil.copytree(base, repository / "snapshots" / "abc")
    assert find_base(adapter) == repository / "snapshots" / "abc"


def test_what_vllm_cannot_serve_beside_a_base_is_refused_before_it_starts(base: Path, tmp_path: Path) -> None:
    model = check_checkpoint(base)
    with pytest.raises(UserError, match=r"DoRA.*leave --lora-serve out"):
        require_servable(adapter_of(tmp_path / "a", use_dora=True), model)
    whole = matrices(MODULES, 2) | {f"base_model.model.{DOWN}.weight": np.zeros((4, 8), np.float32)}
    with pytest.raises(UserError, match=r"modules_to_save"):
        require_servable(check_adapter(make_adapter(tmp_path / "b", whole, rank=2)), model)
    adapter = adapter_of(tmp_path / "c")
    (adapter.path / "chat_template.jinja").write_text("{{ another }}")
    with pytest.raises(UserError, match="chat template"):
        require_servable(adapter, model)
    (adapter.path / "chat_template.jinja").write_text(
        "{{ messages }}\n"
    )  # as the base's, but for the newline
    require_servable(adapter, model)


def test_the_same_run_by_either_way_of_naming_an_adapter(base: Path, tmp_path: Path, home: Path) -> None:
    """Both name the base and the adapter by their content; another base or adapter is another run."""
    vllm = str(make_environment(tmp_path / "env", "vllm", "0.32.0"))
    adapter = adapter_of(tmp_path / "checkpoint-10", base)
    named = RunConfig.of(model=str(base), lora=adapter.path, vllm=vllm)
    alone = RunConfig.of(model=str(adapter.path), vllm=vllm)
    first, second = (prepare(config.policy, {}, lambda text: None).identity for config in (named, alone))
    assert first == second
    assert (first["lora_sha256"], first["lora_rank"]) == (adapter.identity, 2)
    assert named.policy.display_name == "base:checkpoint-10"
    assert named.folder() != RunConfig.of(model=str(base), lora=tmp_path / "other").folder()
    served = named.with_options(lora_serve=True)
    assert served.identity() != named.identity()


def test_a_run_without_an_adapter_has_the_identity_and_the_folder_that_it_always_had() -> None:
    config = RunConfig.of(model="ckpt")
    assert not {"lora", "lora_serve"} & config.identity().keys()


def test_a_base_that_is_not_here_is_asked_for_before_anything_starts(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub-home"))
    vllm = str(make_environment(tmp_path / "env", "vllm", "0.32.0"))
    adapter = adapter_of(tmp_path / "a", "org/base")
    with pytest.raises(UserError, match="hf download org/other"):
        prepare(PolicyConfig(model="org/other", lora=adapter.path, vllm=vllm), {}, lambda text: None)


@pytest.mark.parametrize("model", ["http://127.0.0.1:1/v1", "oracle"])
def test_an_adapter_is_only_for_servers_of_ours(model: str) -> None:
    with pytest.raises(UserError, match="--lora"):
        RunConfig.of(model=model, lora=Path("a"))


def test_an_environment_without_peft_gets_the_command_that_adds_it(
    base: Path, tmp_path: Path, home: Path
) -> None:
    """The environment there is has no library at all."""
    environment = make_environment(tmp_path / "env", "vllm", "0.32.0")
    adapter = adapter_of(tmp_path / "a", base)
    with pytest.raises(MergeError, match=r"no peft.*-m pip install peft"):
        ensure_merged(check_checkpoint(base), adapter, lambda line: None, str(environment))
    assert not list((merging.cache_folder() / "models").glob("merg*-*"))


def test_a_quantised_base_is_not_merged_into(base: Path, tmp_path: Path, home: Path) -> None:
    config = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(config | {"quantization_config": {"bits": 4}}))
    with pytest.raises(MergeError, match=r"is quantised.*--lora-serve"):
        ensure_merged(check_checkpoint(base), adapter_of(tmp_path / "a"), lambda line: None, None)


def tiny_adapter(folder: Path, base: Path, seed: int = 0, scale: float = 1.0) -> Path:
    modules = {f"model.layers.{i}.self_attn.q_proj": (64, 64) for i in (0, 1)}
    modules |= {f"model.layers.{i}.mlp.down_proj": (64, 128) for i in (0, 1)}
    return make_adapter(folder, matrices(modules, 4, seed, scale), rank=4, base=base)


def rounded(values: np.ndarray) -> np.ndarray:
    """float32 to the nearest bfloat16, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


@pytest.mark.vllm
@pytest.mark.slow
def test_merged_weights_are_the_base_plus_the_scaled_product_rounded_once(
    tiny_checkpoint: Path, server_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit; weights without an adapter, tokenizer and chat template stay as they are."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(merging, "cache_folder", lambda: tmp_path / "cache")
    folder = tiny_adapter(tmp_path / "checkpoint-10", tiny_checkpoint)
    base, adapter = check_checkpoint(tiny_checkpoint), check_adapter(folder)
    check_fits(adapter, base)
    merged = ensure_merged(base, adapter, lambda line: None)
    before = read_tensors(tiny_checkpoint / "model.safetensors")
    after, added = (
        read_tensors(path) for path in (merged / "model.safetensors", folder / "adapter_model.safetensors")
    )
    assert before.keys() == after.keys()
    changed = 0
    for name, values in before.items():
        key = f"base_model.model.{name.removesuffix('.weight')}"
        if f"{key}.lora_A.weight" in added:
            values = rounded(values + 2 * (added[f"{key}.lora_B.weight"] @ added[f"{key}.lora_A.weight"]))
            changed += 1
        assert np.array_equal(after[name], values), name
    assert changed == 4
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (merged / name).read_bytes() == (tiny_checkpoint / name).read_bytes()
    lines: list[str] = []
    assert ensure_merged(base, adapter, lines.append) == merged
    assert lines == []  # made once


@pytest.mark.vllm
@pytest.mark.slow
async def test_an_adapter_on_a_server_of_its_base_plays(
    environment: dict[str, str],
    tmp_path: Path,
    tiny_checkpoint: Path,
    server_python: Path,
    shared_vllm: SharedVllm,
) -> None:
    """The adapter answers, not the base: its replies are others than those of the same weights without it."""
    options = ("--max-turns", 2, "--max-tokens", 12, "--concurrency", 4, "--limit", 3)
    adapter = tiny_adapter(tmp_path / "strong", tiny_checkpoint, scale=8.0)
    served = ("--model", adapter, "--vllm", server_python, "--lora-serve")
    same = [
        read_tensors(folder / "model.safetensors") for folder in (tiny_checkpoint, shared_vllm.checkpoint)
    ]
    assert all(np.array_equal(values, same[1][name]) for name, values in same[0].items())
    replies = []
    for name, model in (
        ("adapted", served),
        ("base", ("--model", shared_vllm.base_url, "--model-name", "toy")),
    ):
        run = tmp_path / name
        done = await asyncio.to_thread(run_compass, environment, run, *model, *options)
        assert done.returncode == 0, done.stderr
        replies.append({e.task_id: [turn.reply for turn in e.turns] for e in read_episodes(run)})
    model_of = json.loads((tmp_path / "adapted" / "manifest.json").read_text())["identity"]["model"]
    assert model_of["lora_sha256"] == check_adapter(adapter).identity
    assert len(replies[0]) == 3
    assert all(replies[0][task] != replies[1][task] for task in replies[0])
    assert "lora" in evalharness(environment, "show", tmp_path / "adapted", "--json", "-").stdout
