"""Estimate the memory of a training from the model's config, and find options with which the training fits.

The bytes of activations per layer hold for LLaMA-like models in transformers 5. They were measured on a CPU, as tensors
kept for the backward pass (tests/training/tune/test_memory.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.tune.settings import Settings

_TILE_TOKENS, _TILE_WORDS = 4096, 32768
"""TRL 1.16 computes the loss in tiles of this many trained tokens and vocabulary entries."""
_CPU_TILES = 7.5
"""On a CPU, PyTorch holds this many float32 copies of a tile at the same time. On a GPU, one kernel works in place."""
_LIBRARIES_CPU, _LIBRARIES_GPU = 2**30, 2 * 2**30
"""Bytes for the libraries. On a GPU they include the CUDA context and memory lost to fragmentation."""
_SHORTEST = 512
"""Smallest --max-length that `find_options` proposes."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder model that determine the memory of its training."""

    layers: int
    hidden: int
    inner: int
    key_value: int
    """Total width of the keys of a layer; the values have the same width."""
    vocabulary: int
    tied: bool
    query: int

    @property
    def layer(self) -> int:
        """Parameters of a layer."""
        attention = 2 * self.hidden * (self.query + self.key_value)
        return attention + 3 * self.hidden * self.inner + 2 * self.hidden

    @property
    def head(self) -> int:
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        return self.layers * self.layer + self.hidden + self.head * (1 if self.tied else 2)

    def adapter(self, rank: int) -> int:
        """Return the parameters of LoRA on all linear layers."""
        ends = 4 * self.hidden + 2 * self.query + 2 * self.key_value + 3 * (self.hidden + self.inner)
        return rank * self.layers * ends


def read_shape(config: Mapping[str, Any]) -> Shape:
    """Read the sizes from a `config.json`; missing values are 0. Raises UserError if a value is no whole number."""
    text = config.get("text_config")
    config = text if isinstance(text, dict) else config

    def number(name: str) -> int:
        value = config.get(name) or 0
        if not isinstance(value, int) or value < 0:
            raise UserError(f"the model's config.json: {name} is no whole number")
        return value

    hidden, heads = number("hidden_size"), number("num_attention_heads") or 1
    size = number("head_dim") or hidden // heads
    return Shape(
        layers=number("num_hidden_layers"),
        hidden=hidden,
        inner=number("intermediate_size") or 4 * hidden,
        key_value=size * (number("num_key_value_heads") or heads),
        vocabulary=number("vocab_size"),
        tied=bool(config.get("tie_word_embeddings", False)),
        query=size * heads,
    )


@dataclass(frozen=True)
class MemoryUse:
    """The options and data lengths of a training that determine its memory."""

    settings: Settings
    tokens: int
    """Tokens of the longest conversation."""
    trained_tokens: int
    """Largest number of trained tokens in one conversation."""
    bf16: bool
    gpu: bool
    micro_batch: int = 1


@dataclass(frozen=True)
class Memory:
    """Peak bytes of a training by part."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    libraries: int

    @property
    def total(self) -> int:
        return sum(vars(self).values())

    def to_json(self) -> dict[str, int]:
        return {**vars(self), "total": self.total}


def memory(shape: Shape, use: MemoryUse, parameters: int = 0, trained: int = 0) -> Memory:
    """Estimate the memory. If the numbers of `parameters` and `trained` parameters are 0, compute them from `shape`."""
    full = use.settings.method == "full"
    parameters = parameters or shape.parameters
    trained = trained or (parameters if full else shape.adapter(use.settings.lora_rank))
    computed = 2 if use.bf16 else 4
    checkpointing = use.settings.gradient_checkpointing

    weights = 4 * parameters if full else computed * parameters + 4 * trained
    # Autocast makes bfloat16 copies of the weights. Without checkpointing they are kept for the backward pass.
    copies = 2 * shape.layers * shape.layer if use.bf16 and full and not checkpointing else 0

    tokens = use.tokens * use.micro_batch
    mixed = use.bf16 and full
    stream = 4 if mixed or not use.bf16 else 2
    """Bytes of a hidden state's number: 4 under autocast, which passes float32 between layers."""
    each = 8.1 * 4 if not use.bf16 else 29.6 if mixed else 18
    layer = tokens * (each * shape.hidden + computed * (4 * shape.inner + 2 * shape.key_value))
    ends = 3.5 * stream * tokens * shape.hidden
    kept = tokens * shape.layers * stream * shape.hidden if checkpointing else shape.layers * layer

    trained_tokens = min(use.trained_tokens * use.micro_batch, tokens)
    scored = min(trained_tokens, _TILE_TOKENS)
    words = min(shape.vocabulary, _TILE_WORDS)
    logits = scored * _TILE_WORDS * computed + (0 if use.gpu else _CPU_TILES * 4 * scored * words)
    logits += (4 * shape.head if full else 0) + 8 * trained_tokens * shape.hidden
    # With checkpointing, a layer is recomputed after the logits are freed, so only the larger of both counts.
    again = max(0.0, layer - logits) if checkpointing else 0.0
    return Memory(
        weights=weights + copies,
        gradients=4 * trained,
        optimizer=8 * trained,
        activations=int(kept + ends + again),
        logits=int(logits),
        libraries=_LIBRARIES_GPU if use.gpu else _LIBRARIES_CPU,
    )


def find_options(shape: Shape, use: MemoryUse, limit: int) -> str | None:
    """Return options that reduce the memory to `limit` bytes: a single option if one suffices, otherwise several.
    Return None if all options together do not suffice."""
    steps = list(_options(use))
    for option, changed in steps:
        if memory(shape, replace(use, **changed)).total <= limit:
            return option
    options: dict[str, str] = {}
    for option, changed in steps:
        smaller = replace(use, **changed)
        if memory(shape, smaller).total < memory(shape, use).total:
            use = smaller
            options[option.split()[0]] = option
        if memory(shape, use).total <= limit:
            return " ".join(options.values())
    return None


def _options(use: MemoryUse) -> Iterator[tuple[str, dict[str, Any]]]:
    settings = use.settings
    if not settings.gradient_checkpointing:
        settings = replace(settings, gradient_checkpointing=True)
        yield "--gradient-checkpointing", {"settings": settings}
    if use.micro_batch > 1:
        yield "--micro-batch 1", {"micro_batch": 1}
    length = use.tokens // 2
    while length >= _SHORTEST:
        yield f"--max-length {length}", {"tokens": length, "trained_tokens": min(use.trained_tokens, length)}
        length //= 2
    if settings.method == "full":
        yield "--method lora", {"settings": replace(settings, method="lora")}
