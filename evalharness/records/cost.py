"""The cost of a run's tokens, by the user's prices. Pure except for `read_prices`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalharness.base.errors import UserError
from evalharness.base.yaml_lines import load_yaml
from evalharness.config import PolicyConfig
from evalharness.records.stored import Stored, why

_Price = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class Prices(BaseModel):
    """Per million tokens, in any one currency. The names are those of Inspect's model costs."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    input: _Price
    """Of prompt tokens."""
    output: _Price
    """Of completion tokens."""
    input_cache_read: _Price | None = None
    """Of prompt tokens that the server found in its cache; None: as `input`."""
    input_cache_write: _Price | None = None
    """Read and not charged: chat servers do not say how many tokens they wrote to a cache."""

    def of(self, tokens: Tokens) -> float:
        cached = self.input if self.input_cache_read is None else self.input_cache_read
        fresh = tokens.prompt - tokens.cached
        return (fresh * self.input + tokens.cached * cached + tokens.completion * self.output) / 1e6


_Sum = Annotated[int, Field(ge=0, strict=True)]


@dataclass(frozen=True)
class Tokens:
    """Counts over some turns."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    prompt: _Sum = 0
    """Read by the model."""
    cached: _Sum = 0
    """Of those in `prompt`."""
    completion: _Sum = 0
    """Written by it."""

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompt + other.prompt, self.cached + other.cached, self.completion + other.completion
        )


class CostPart(Stored):
    """What some episodes cost, in the currency of the prices."""

    total: float
    """All of it."""
    per_episode: float | None
    """None where there is none."""
    per_success: float | None
    """None where there is none."""
    tokens: Tokens
    """What it is made of."""


class Cost(CostPart):
    """What a run cost."""

    prices: Prices
    """Per million tokens."""
    unfinished: float
    """Of `total`, for turns whose episodes were not finished."""
    uncounted_turns: int
    """Turns without token counts: the cost is higher than said."""
    families: dict[str, CostPart]
    """Each family's part."""


def read_prices(path: Path, model: str) -> Prices:
    """Read prices from JSON or YAML: the prices themselves, or a mapping of models to them. Raises UserError."""
    data = load_yaml(path, f"--prices {path}")
    if isinstance(data, dict) and data and all(isinstance(value, dict) for value in data.values()):
        if model not in data:
            raise UserError(
                f"--prices {path} has no prices of {model!r}, only of {', '.join(map(str, data))}"
            )
        data = data[model]
    try:
        return Prices.model_validate(data)
    except ValidationError as error:
        raise UserError(
            f"--prices {path}: {why(error)}; it holds input and output, and input_cache_read where "
            "cached tokens are cheaper, each per million tokens"
        ) from None


def prices_of(policy: PolicyConfig) -> Prices | None:
    """Return the model's prices from `--prices`. None without prices or costs. Raises UserError."""
    if policy.prices is None or policy.is_scripted:
        return None
    return read_prices(policy.prices, policy.display_name)
