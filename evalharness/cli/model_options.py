"""Options of commands that ask a served model outside any environment: fields of `PolicyConfig`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evalharness.cli.common import at_least_one, write_json
from evalharness.cli.options import add_option
from evalharness.config import OPTIONS, PolicyConfig, make_part

if TYPE_CHECKING:
    from rich.console import RenderableType

    from evalharness.models.asking import Outcome

SERVING = ("concurrency", "vllm", "vllm_args", "timeout", "prices", "attempts")


def add_model(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """`--model`, `--model-name`, `--api-key-env` as `run` has them; `--judge`, `--judge-name`, `--judge-key-env`."""
    group = parser.add_argument_group(what)
    group.add_argument(
        f"--{name}",
        required=True,
        metavar="MODEL",
        help="a checkpoint directory or hub id (served by a vLLM started for it), http://host:port/v1 (any "
        "OpenAI-compatible server), or demo",
    )
    add_option(group, f"{name}_name", OPTIONS["model_name"])
    add_option(group, _key_option(name), OPTIONS["api_key_env"])


def _key_option(name: str) -> str:
    """A judge's key is not for the model's server."""
    return "api_key_env" if name == "model" else f"{name}_key_env"


def add_fields(group: argparse._ActionsContainer, names: Iterable[str], **defaults: Any) -> None:
    """Options as `run` has them; `defaults`: of this command."""
    for name in names:
        add_option(group, name, OPTIONS[name], default=defaults.get(name))


def policy_of(args: argparse.Namespace, name: str = "model", **own: Any) -> PolicyConfig:
    """Of `--NAME` and what the command says of its serving; `own` counts more. Raises UserError."""
    from evalharness.models.api_key import read_key

    option = _key_option(name)
    variable = getattr(args, option, None)
    read_key("--" + option.replace("_", "-"), variable)
    given = {key: value for key, value in vars(args).items() if key in PolicyConfig.model_fields}
    names = {"model": getattr(args, name), "model_name": getattr(args, f"{name}_name")}
    return make_part(PolicyConfig, {**given, **names, "api_key_env": variable, **own})


def attempts_of(args: argparse.Namespace) -> int:
    at_least_one("--attempts", args.attempts)
    return args.attempts or int(OPTIONS["attempts"].default)


def show_outcome(args: argparse.Namespace, outcome: Outcome, table: RenderableType, left: str) -> int:
    """Print and write what came of it; the exit status. `left` says what is left: `turns are left to judge`."""
    from evalharness.base.terminal import make_console, say

    console = make_console(stderr=args.json == "-")
    console.print(table)
    console.print(f"folder: {outcome.folder}", soft_wrap=True, highlight=False, markup=False)
    write_json(args.json, outcome.summary)
    if outcome.summary["left"]:
        say(f"evalharness: {outcome.summary['left']} {left}; the same command continues")
    if outcome.stopped:
        say(f"evalharness: stopped early: {outcome.stopped}")
    return outcome.exit_status
