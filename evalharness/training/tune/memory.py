"""The memory of a training, part by part, from the model's config, and which option makes it fit. Pure.

What a layer keeps for the way back is counted for LLaMA's kind of layer as transformers 5 computes it, and was measured
as live tensors on a CPU (tests/training/tune/test_memory.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalharness.base.errors import UserError
from evalharness.training.tune.settings import Settings

_TILE_TOKENS, _TILE_WORDS = 4096, 32768
"""TRL 1.16 computes its loss over so many trained tokens and words of the vocabulary at a time."""
_CPU_TILES = 7.5
"""Float32 copies of a tile that PyTorch's operations hold at once; on a GPU one kernel writes over the tile."""
_LIBRARIES_CPU, _LIBRARIES_GPU = 2**30, 2 * 2**30
"""Bytes. On a GPU: its context, pieces that the allocator cannot use."""
_SHORTEST = 512
"""Tokens: a shorter limit is not proposed."""


@dataclass(frozen=True)
class Shape:
    """What of a decoder decides its memory."""

    layers: int
    hidden: int
    inner: int
    key_value: int
    """Width of all keys of a layer together; that of its values is the same."""
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
        """Parameters of LoRA on all linear layers."""
        ends = 4 * self.hidden + 2 * self.query + 2 * self.key_value + 3 * (self.hidden + self.inner)
        return rank * self.layers * ends


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Of a `config.json`; zeros where it does not say. Raises UserError where it says no whole number."""
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
class Use:
    """How a model is trained, as far as it decides memory."""

    settings: Settings
    tokens: int
    """Of the longest conversation."""
    trained_tokens: int
    """Of one conversation at most."""
    bf16: bool
    gpu: bool
    micro_batch: int = 1


@dataclass(frozen=True)
class Memory:
    """Bytes that the training takes at most."""

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


def memory(shape: Shape, use: Use, parameters: int = 0, trained: int = 0) -> Memory:
    """`parameters` and `trained`: where they are known better than from the config."""
    full = use.settings.method == "full"
    parameters = parameters or shape.parameters
    trained = trained or (parameters if full else shape.adapter(use.settings.lora_rank))
    computed = 2 if use.bf16 else 4
    checkpointing = use.settings.gradient_checkpointing

    weights = 4 * parameters if full else computed * parameters + 4 * trained
    # Autocast's copies in bfloat16, kept for the way back where nothing is computed again.
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
    # With checkpointing one layer is computed again after the logits are gone.
    again = max(0.0, layer - logits) if checkpointing else 0.0
    return Memory(
        weights=weights + copies,
        gradients=4 * trained,
        optimizer=8 * trained,
        activations=int(kept + ends + again),
        logits=int(logits),
        libraries=_LIBRARIES_GPU if use.gpu else _LIBRARIES_CPU,
    )


def fitting(shape: Shape, use: Use, limit: int) -> str | None:
    """The fewest options that bring `use` to `limit` bytes, tried in order; None where none does."""
    steps = list(_options(use))
    for option, changed in steps:
        if memory(shape, replace(use, **changed)).total <= limit:
            return option
    taken: dict[str, str] = {}
    for option, changed in steps:
        smaller = replace(use, **changed)
        if memory(shape, smaller).total < memory(shape, use).total:
            use = smaller
            taken[option.split()[0]] = option
        if memory(shape, use).total <= limit:
            return " ".join(taken.values())
    return None


def _options(use: Use) -> Iterator[tuple[str, dict[str, Any]]]:
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
