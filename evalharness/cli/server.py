"""The vLLM server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.base.paths import real_path, server_folder
from evalharness.base.text import duration
from evalharness.cli.common import add_json_option
from evalharness.cli.output import note, say, write_json
from evalharness.cli.parser import CommandParser, argument, subcommand

if TYPE_CHECKING:
    from evalharness.models.serving.find import Candidate
    from evalharness.models.serving.kept import Kept


_PLACE = {"private environment": "the private environment"}


_SERVED = ("model_name", "vllm", "vllm_args", "chat_template", "lora")
HELP = "install vLLM, show which one `run` starts, keep one"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    install = subcommand(actions, "install", _install, "install a vLLM of its own")
    kind = install.add_mutually_exclusive_group()
    argument(kind, "--cpu", "the CPU build (3.5 GB; default without an NVIDIA GPU)")
    argument(kind, "--gpu", "the CUDA build (default with an NVIDIA GPU)")
    argument(install, "--version V", "version of vLLM (default: the one tested)")
    argument(install, "--force", "install again although one is there")

    status = subcommand(actions, "status", _status, "show which vLLM `run` would start, and which are kept")
    argument(status, "model MODEL", "only the kept server of this model", nargs="?")
    argument(status, "--vllm PATH", "as given to `run`")
    add_json_option(status)

    start = subcommand(actions, "start", _start, "start a vLLM and keep it between runs")
    argument(start, "model MODEL", "a checkpoint directory, a hub id, or demo; as for `run`")
    start.add_late(_add_served)
    argument(start, "--idle MINUTES", "end after so long unused", default=30.0)

    stop = subcommand(actions, "stop", _stop, "stop kept servers")
    argument(stop, "model MODEL", "as it was started; not needed for the only one", nargs="?")
    argument(stop, "--all", "all of them")

    subcommand(actions, "uninstall", _uninstall, "remove the private vLLM")


def _install(args: argparse.Namespace) -> int:
    """Install vLLM into an environment of its own in the user's data folder ($EVALHARNESS_HOME/server where that is
    set).
    """
    from evalharness.cli.install_progress import install_progress
    from evalharness.models.serving.find import nvidia_gpu
    from evalharness.models.serving.install import install_server

    cpu = args.cpu or (not args.gpu and not nvidia_gpu())
    with install_progress(sys.stdout) as progress:
        install = install_server(cpu=cpu, version=args.version, force=args.force, on_line=progress)
    what = f"vLLM {install.vllm} ({install.kind}, torch {install.torch}, Python {install.python})"
    if install.fresh:
        say(f"installed {what} in {install.seconds:.0f} s: {install.environment}", stderr=False)
    else:
        say(f"{what} is already there: {install.environment} (--force installs it again)", stderr=False)
    return 0


def _status(args: argparse.Namespace) -> int:
    """Show which vLLM `run` would start, everywhere it looks, and which servers are kept."""
    from evalharness.models.serving.demo import demo_path, is_complete
    from evalharness.models.serving.find import find_server, server_candidates
    from evalharness.models.serving.kept import all_kept

    kept = _named(all_kept(), args.model)
    if args.model is not None:
        if args.json != "-":
            for line in _kept_lines(kept):
                say(line, stderr=False)
        write_json(args.json, {"kept": _kept_json(kept)})
        return 0
    candidates = server_candidates(args.vllm)
    try:
        used, problem = find_server(args.vllm), None
    except UserError as error:
        used, problem = None, str(error)
    demo = demo_path()
    result: dict[str, Any] = {
        "used": None
        if used is None
        else {
            "source": used.source,
            "path": str(used.path),
            "version": used.version,
            "kind": used.kind,
            "argv": list(used.argv),
        },
        "problem": problem,
        "candidates": [_candidate_json(candidate) for candidate in candidates],
        "demo_model": str(demo) if is_complete(demo) else None,
        "kept": _kept_json(kept),
    }
    if args.json != "-":
        for line in [*_status_lines(result), *_kept_lines(kept)]:
            say(line, stderr=False)
    write_json(args.json, result)
    return 0


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    command = candidate.command
    return {
        "source": candidate.source,
        "where": candidate.where,
        "found": command is not None,
        "version": command and command.version,
        "kind": command and command.kind,
        "problem": candidate.problem,
    }


def _status_lines(result: dict[str, Any]) -> list[str]:
    used = result["used"]
    lines = [
        f"run would start: {_name(used)} from {_PLACE.get(used['source'], used['source'])}"
        if used
        else f"run would start none: {result['problem']}",
        "",
        "looked for, in this order:",
    ]
    for candidate in result["candidates"]:
        said = f"{_name(candidate)}: {candidate['where']}" if candidate["found"] else candidate["problem"]
        if not candidate["found"] and candidate["where"] and candidate["problem"] != "not set":
            said += f": {candidate['where']}" if candidate["source"] != "PATH" else ""
        lines.append(f"  {candidate['source']:<20} {said}")
    demo = result["demo_model"] or "not made yet; the first `evalharness run --model demo` makes it"
    return [*lines, "", f"demo model: {demo}"]


def _name(server: dict[str, Any]) -> str:
    return f"vLLM {server['version'] or 'of unknown version'} ({server['kind']})"


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
    chosen = kept if args.all else _named(kept, args.model)
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


def _named(kept: list[Kept], model: str | None) -> list[Kept]:
    """Those that were started as `model`, or serve it by that name; all where none is named."""
    if model is None:
        return kept
    here = real_path(Path(model).expanduser())
    return [
        each for each in kept if model in (each.model, each.served_name) or real_path(each.served) == here
    ]


def _kept_lines(kept: list[Kept]) -> list[str]:
    return ["kept servers:", *(f"  {_line(each)}" for each in kept)] if kept else ["kept servers: none"]


def _kept_json(kept: list[Kept]) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [asdict(each) | {"idle_for_s": round(each.idle_for, 1)} for each in kept]


def _line(kept: Kept) -> str:
    return (
        f"{kept.model} as {kept.served_name}: {kept.base_url}, vLLM {kept.version or 'of unknown version'}, "
        f"unused for {duration(kept.idle_for)} of {duration(kept.idle_s)}"
    )


def _names(kept: list[Kept]) -> str:
    return ", ".join(each.model for each in kept)


def _uninstall(args: argparse.Namespace) -> int:
    """Remove the private environment; models in the cache stay."""
    from evalharness.models.serving.install import uninstall_server

    removed = uninstall_server()
    say(f"removed {server_folder()}" if removed else "there is no private vLLM to remove", stderr=False)
    return 0
