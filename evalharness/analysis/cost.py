"""What the tokens of a run cost, by prices that the user gives. Pure but for `read_prices`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalharness.errors import UserError


class Said(Protocol):
    """A turn, or the reply that becomes one."""

    @property
    def prompt_tokens(self) -> int | None: ...

    @property
    def cached_tokens(self) -> int | None: ...

    @property
    def completion_tokens(self) -> int | None: ...


class Counted(Protocol):
    """What a cost needs of an episode."""

    @property
    def prompt_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def completion_tokens(self) -> int: ...
    @property
    def uncounted(self) -> int: ...
    @property
    def success(self) -> bool: ...


_Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Prices(BaseModel):
    """Per million tokens, in any one currency. The names are those of Inspect's model costs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Price
    output: _Price
    input_cache_read: _Price | None = None
    """Of prompt tokens that the server found in its cache; None: as `input`."""
    input_cache_write: _Price | None = None
    """Read and not charged: chat servers do not say how many tokens they wrote to a cache."""

    def of(self, tokens: Tokens) -> float:
        cached = self.input if self.input_cache_read is None else self.input_cache_read
        fresh = tokens.prompt - tokens.cached
        return (fresh * self.input + tokens.cached * cached + tokens.completion * self.output) / 1e6


@dataclass(frozen=True)
class Tokens:
    """Counts over some turns."""

    prompt: int = 0
    cached: int = 0
    """Of those in `prompt`."""
    completion: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompt + other.prompt, self.cached + other.cached, self.completion + other.completion
        )


def tokens_of(said: Said) -> Tokens:
    prompt = said.prompt_tokens or 0
    return Tokens(prompt, min(said.cached_tokens or 0, prompt), said.completion_tokens or 0)


def read_prices(path: Path, model: str) -> Prices:
    """From JSON or YAML: the prices themselves, or a mapping of models to them. Raises UserError."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"--prices {path}: no such file") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"--prices {path} is not readable: {error}") from None
    if isinstance(data, dict) and data and all(isinstance(value, dict) for value in data.values()):
        if model not in data:
            raise UserError(
                f"--prices {path} has no prices of {model!r}, only of {', '.join(map(str, data))}"
            )
        data = data[model]
    try:
        return Prices.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise UserError(
            f"--prices {path}: {where}: {first['msg']}; it holds input and output, and input_cache_read where "
            "cached tokens are cheaper, each per million tokens"
        ) from None


def cost_of(groups: Mapping[str, Sequence[Counted]], prices: Prices, unfinished: Tokens) -> dict[str, Any]:
    """The `cost` part of `summary.json`: of the whole, each family, each success.

    `unfinished`: tokens of turns whose episodes were not finished; in the total alone.
    """
    families = {family: _part(scores, prices) for family, scores in groups.items()}
    whole = _part([score for scores in groups.values() for score in scores], prices)
    lost = prices.of(unfinished)
    return {
        "prices": prices.model_dump(),
        **whole,
        "total": whole["total"] + lost,
        "unfinished": lost,
        "uncounted_turns": sum(score.uncounted for scores in groups.values() for score in scores),
        "families": families,
    }


def _part(scores: Sequence[Counted], prices: Prices) -> dict[str, Any]:
    tokens = sum(
        (Tokens(s.prompt_tokens, s.cached_tokens, s.completion_tokens) for s in scores), start=Tokens()
    )
    total, successes = prices.of(tokens), sum(score.success for score in scores)
    return {
        "total": total,
        "per_episode": total / len(scores) if scores else None,
        "per_success": total / successes if successes else None,
        "tokens": asdict(tokens),
    }
