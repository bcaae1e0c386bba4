"""`evalharness server start`, `stop` and the kept servers of `status`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path
from evalharness.base.text import duration
from evalharness.cli.common import note, say
from evalharness.cli.parser import Commands, argument, subcommand

if TYPE_CHECKING:
    from evalharness.models.serving.kept import Kept


_SERVED = ("model_name", "vllm", "vllm_args", "chat_template", "lora")


def register(actions: Commands) -> None:
    start = subcommand(actions, "start", _start, "start a vLLM and keep it between runs")
    argument(start, "model MODEL", "a checkpoint directory, a hub id, or demo; as for `run`")
    start.add_late(_add_served)
    argument(start, "--idle MINUTES", "end after so long unused", default=30.0)

    stop = subcommand(actions, "stop", _stop, "stop kept servers")
    argument(stop, "model MODEL", "as it was started; not needed for the only one", nargs="?")
    argument(stop, "--all", "all of them")


def _add_served(parser: argparse.ArgumentParser) -> None:
    from evalharness.cli.options import add_fields

    add_fields(parser, _SERVED)


def _start(args: argparse.Namespace) -> int:
    """Start a vLLM and keep it between runs. `run`, `sweep` and the others use it where they would start the same one.
    It listens on loopback only, and ends when nobody has used it for a while.
    """
    from evalharness.cli.options import policy_of
    from evalharness.models.own_servers import what_to_serve
    from evalharness.models.serving.keeper import ToKeep, start_kept

    if not 0 < args.idle < float("inf"):
        raise UserError("--idle takes minutes above 0")
    policy = policy_of(args)
    if not policy.is_ours:
        raise UserError(f"{args.model} needs no server; give a checkpoint directory, a hub id, or demo")
    last = ""

    def status(text: str) -> None:
        nonlocal last
        if text.partition(",")[0] != last:  # each phase once, and not every five seconds
            last = text.partition(",")[0]
            note(text)

    what = what_to_serve(policy, status)
    made = what.make(status)
    to_keep = ToKeep(
        policy.model, made.model, made.served_name, what.identity, made.extra, policy.vllm, 60 * args.idle
    )
    kept, fresh = start_kept(to_keep, status)
    say(("" if fresh else "already there: ") + _line(kept), stderr=False)
    say(f"used by: evalharness run --model {args.model} ...  (ends {duration(kept.idle_s)} after its last use)",
        stderr=False)  # fmt: skip
    return 0


def _stop(args: argparse.Namespace) -> int:
    """Stop a kept server, or the only one there is."""
    from evalharness.models.serving.kept import all_kept, stop_kept

    kept = all_kept()
    chosen = kept if args.all else named(kept, args.model)
    if args.model is None and not args.all and len(kept) > 1:
        raise UserError(f"there are {len(kept)} kept servers; name one, or give --all: " + _names(kept))
    if not chosen:
        if args.model is not None:
            raise UserError(f"no kept server of {args.model}; there are: {_names(kept) or 'none'}")
        say("there is no kept server", stderr=False)
    for each in chosen:
        if not stop_kept(each):
            raise UserError(
                f"the server of {each.model} (process {each.keeper_pid}) does not end; its log: {each.log}"
            )
        say(f"stopped the server of {each.model}", stderr=False)
    return 0


def named(kept: list[Kept], model: str | None) -> list[Kept]:
    """Those that were started as `model`, or serve it by that name; all where none is named."""
    if model is None:
        return kept
    here = real_path(Path(model).expanduser())
    return [
        each for each in kept if model in (each.model, each.served_name) or real_path(each.served) == here
    ]


def status_lines(kept: list[Kept]) -> list[str]:
    return ["kept servers:", *(f"  {_line(each)}" for each in kept)] if kept else ["kept servers: none"]


def as_json(kept: list[Kept]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(each) | {"idle_for_s": round(each.idle_for, 1)} for each in kept]


def _line(kept: Kept) -> str:
    return (
        f"{kept.model} as {kept.served_name}: {kept.base_url}, vLLM {kept.version or 'of unknown version'}, "
        f"unused for {duration(kept.idle_for)} of {duration(kept.idle_s)}"
    )


def _names(kept: list[Kept]) -> str:
    return ", ".join(each.model for each in kept)
