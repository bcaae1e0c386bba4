"""Options of commands that ask a served model outside any environment."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.errors import UserError

if TYPE_CHECKING:
    from evalharness.config import RunConfig
    from evalharness.judge import TokenPrices

_SERVING = ("concurrency", "vllm", "vllm_args", "timeout", "attempts")


def add_model(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """`--NAME`, `--NAME-name` and `--NAME-key-env`: a judge's key is not for the model's server."""
    group = parser.add_argument_group(what)
    group.add_argument(
        f"--{name}",
        required=True,
        metavar="MODEL",
        help="a checkpoint directory or hub id (served by a vLLM started for it), http://host:port/v1 (any "
        "OpenAI-compatible server), or demo",
    )
    group.add_argument(
        f"--{name}-name", metavar="NAME", help="the name an endpoint serves it by; shown in tables"
    )
    group.add_argument(
        f"--{name}-key-env", metavar="VAR", help="environment variable that holds its endpoint's key"
    )


def add_serving(parser: argparse.ArgumentParser, *, max_tokens: int) -> None:
    how = parser.add_argument_group("how to do it")
    how.add_argument(
        "--max-tokens", type=int, default=max_tokens, metavar="N", help=f"tokens of one reply ({max_tokens})"
    )
    how.add_argument(
        "--plain",
        action="store_true",
        help="do not ask the judge's server for structured output (JSON schema)",
    )
    how.add_argument("--prompts", type=Path, metavar="DIR", help="folder with judge prompts of your own")
    how.add_argument(
        "--concurrency",
        type=int,
        metavar="N",
        help="questions in flight at most (default: found while it goes on)",
    )
    how.add_argument(
        "--vllm", metavar="PATH", help="the vLLM to start (default: see `evalharness server status`)"
    )
    how.add_argument("--vllm-args", metavar="ARGS", help='passed to vLLM as they are: "--max-model-len 8192"')
    how.add_argument("--timeout", type=float, metavar="S", help="seconds for one reply (default: 600)")
    how.add_argument(
        "--attempts", type=int, metavar="N", help="tries of a question whose infrastructure fails (3)"
    )
    how.add_argument(
        "--price-in", type=float, metavar="P", help="price of a million prompt tokens, for the cost"
    )
    how.add_argument("--price-out", type=float, metavar="P", help="price of a million completion tokens")


def model_config(args: argparse.Namespace, name: str, **own: Any) -> RunConfig:
    """Raises UserError."""
    from evalharness.config import make_config
    from evalharness.policy.api_key import read_key

    variable = getattr(args, f"{name}_key_env")
    read_key(f"--{name}-key-env", variable)
    flags = {key: value for key in _SERVING if (value := getattr(args, key)) is not None}
    return make_config(
        {
            **flags,
            "model": getattr(args, name),
            "model_name": getattr(args, f"{name}_name"),
            "api_key_env": variable,
            "max_tokens": args.max_tokens,
            **own,
        }
    )


def prices(args: argparse.Namespace) -> TokenPrices:
    from evalharness.judge import TokenPrices

    for option, price in (("--price-in", args.price_in), ("--price-out", args.price_out)):
        if price is not None and not 0 <= price < float("inf"):
            raise UserError(f"{option} is a price, 0 or more")
    if (args.price_in is None) != (args.price_out is None):
        raise UserError("a cost needs both prices: --price-in and --price-out")
    return TokenPrices(args.price_in, args.price_out)


def at_least_one(option: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise UserError(f"{option} is at least 1")
