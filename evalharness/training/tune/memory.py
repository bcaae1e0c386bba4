"""Estimate the memory of a training by parts from the model's config, and find options that make it fit.

The activations that a layer keeps for the backward pass are counted for layers of LLaMA's kind in transformers 5. They
were measured as live tensors on a CPU (tests/training/tune/test_memory.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.tune.settings import Settings

_TILE_TOKENS, _TILE_WORDS = 4096, 32768
"""TRL 1.16 computes its loss over this many trained tokens and words of the vocabulary at a time."""
_CPU_TILES = 7.5
"""Float32 copies of a tile that PyTorch's operations hold at once; on a GPU one kernel overwrites the tile."""
_LIBRARIES_CPU, _LIBRARIES_GPU = 2**30, 2 * 2**30
"""Bytes of the libraries. On a GPU: its context, and fragments that the allocator cannot use."""
_SHORTEST = 512
"""Tokens of the shortest limit that is proposed."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder that determine its memory."""

    layers: int
    hidden: int
    inner: int
    key_value: int
    """Width of all keys of a layer together, and of all its values."""
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
    """Read the shape from a `config.json`; missing values are 0. Raises UserError if a value is no whole number."""
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
    """The training's options that determine its memory."""

    settings: Settings
    tokens: int
    """Tokens of the longest conversation."""
    trained_tokens: int
    """The most trained tokens of one conversation."""
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
    """Estimate the memory. Pass `parameters` and `trained` if they are known better than from the config."""
    full = use.settings.method == "full"
    parameters = parameters or shape.parameters
    trained = trained or (parameters if full else shape.adapter(use.settings.lora_rank))
    computed = 2 if use.bf16 else 4
    checkpointing = use.settings.gradient_checkpointing

    weights = 4 * parameters if full else computed * parameters + 4 * trained
    # Autocast's bfloat16 copies, kept for the backward pass unless checkpointing recomputes.
    copies = 2 * shape.layers * shape.layer if use.bf16 and full and not checkpointing else 0

    tokens = use.tokens * use.micro_batch
    mixed = use.bf16 and full
    stream = 4 if mixed or not use.bf16 else 2
    """Bytes of a number that goes from layer to layer: autocast keeps float32."""
    each = 8.1 * 4 if not use.bf16 else 29.6 if mixed else 18
    layer = tokens * (each * shape.hidden + computed * (4 * shape.inner + 2 * shape.key_value))
    ends = 3.5 * stream * tokens * shape.hidden
    kept = tokens * shape.layers * stream * shape.hidden if checkpointing else shape.layers * layer

    trained_tokens = min(use.trained_tokens * use.micro_batch, tokens)
    scored = min(trained_tokens, _TILE_TOKENS)
    words = min(shape.vocabulary, _TILE_WORDS)
    logits = scored * _TILE_WORDS * computed + (0 if use.gpu else _CPU_TILES * 4 * scored * words)
    logits += (4 * shape.head if full else 0) + 8 * trained_tokens * shape.hidden
    # With checkpointing, one layer is recomputed after the logits are freed.
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
    """Return the fewest options that reduce the memory to `limit` bytes, tried in order; None if none do."""
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
