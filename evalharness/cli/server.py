"""Install vLLM, show which vLLM `run` starts, or remove it."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError
from evalharness.base.paths import server_folder
from evalharness.cli.common import add_json_option
from evalharness.cli.output import say, write_json
from evalharness.cli.parser import CommandParser, argument, subcommand

if TYPE_CHECKING:
    from evalharness.models.serving.find import Candidate


_PLACE = {"private environment": "the private environment"}


HELP = "install vLLM, or show which vLLM `run` starts"


def add_options(parser: CommandParser) -> None:
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    install = subcommand(actions, "install", _install, "install a private vLLM")
    kind = install.add_mutually_exclusive_group()
    argument(kind, "--cpu", "the CPU build (3.5 GB; default without an NVIDIA GPU)")
    argument(kind, "--gpu", "the CUDA build (default with an NVIDIA GPU)")
    argument(install, "--version V", "version of vLLM (default: the version tested with evalharness)")
    argument(install, "--force", "install again")

    status = subcommand(actions, "status", _status, "show which vLLM `run` would start")
    argument(status, "--vllm PATH", "apply this option of `run`")
    add_json_option(status)

    subcommand(actions, "uninstall", _uninstall, "remove the private vLLM")


def _install(args: argparse.Namespace) -> int:
    """Install vLLM into a private environment in the user's data folder ($EVALHARNESS_HOME/server if that is set)."""
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
        say(f"{what} is already installed: {install.environment} (--force installs it again)", stderr=False)
    return 0


def _status(args: argparse.Namespace) -> int:
    """Show which vLLM `run` would start, and all places where it looks."""
    from evalharness.models.serving.demo import demo_path, is_complete
    from evalharness.models.serving.find import find_server, server_candidates

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
    }
    if args.json != "-":
        for line in _status_lines(result):
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
        else f"run would start no server: {result['problem']}",
        "",
        "searched in this order:",
    ]
    for candidate in result["candidates"]:
        text = f"{_name(candidate)}: {candidate['where']}" if candidate["found"] else candidate["problem"]
        if not candidate["found"] and candidate["where"] and candidate["problem"] != "not set":
            text += f": {candidate['where']}" if candidate["source"] != "PATH" else ""
        lines.append(f"  {candidate['source']:<20} {text}")
    demo = result["demo_model"] or "not made yet; the first `evalharness run --model demo` makes it"
    return [*lines, "", f"demo model: {demo}"]


def _name(server: dict[str, Any]) -> str:
    return f"vLLM {server['version'] or 'of unknown version'} ({server['kind']})"


def _uninstall(args: argparse.Namespace) -> int:
    """Remove the private environment; models in the cache stay."""
    from evalharness.models.serving.install import uninstall_server

    removed = uninstall_server()
    say(f"removed {server_folder()}" if removed else "there is no private vLLM to remove", stderr=False)
    return 0
