"""The command line. One small module a command; each imports what it needs when it runs, so `--help` is quick."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence

from evalharness._version import __version__
from evalharness.errors import EvalharnessError, InfrastructureError

COMMANDS = (
    "run",
    "sweep",
    "bon",
    "show",
    "compare",
    "leaderboard",
    "analyze",
    "plot",
    "diversity",
    "export",
    "track",
    "report",
    "view",
    "judge",
    "label",
    "agreement",
    "mtbench",
    "tasks",
    "play",
    "perturb",
    "audit",
    "suite",
    "server",
    "data",
    "conform",
    "doctor",
    "completion",
)
"""In the order in which the help lists them."""

EXIT_STATUS = {
    0: "done",
    1: "a check found something: `conform`, `data fetch`, `data verify`, `doctor`",
    2: "bad request; nothing was written",
    3: "ended with infrastructure failures (server, simulator, disk); the same command continues",
    130: "interrupted with Ctrl-C; the same command continues",
    143: "terminated (SIGTERM); the same command continues",
}

_EPILOG = """\
exit status: 0 done, 1 a check found something, 2 bad request, 3 ended with infrastructure failures, 130 interrupted
with Ctrl-C, 143 terminated

first steps:
  evalharness server install --cpu                       a vLLM of its own (leave out --cpu with a GPU)
  evalharness run --model demo --suite open --limit 2    a small real model on tasks that need no download
  evalharness run --model ckpt/ --tasks all              yours on everything
"""


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evalharness",
        description="Evaluate LLM agents in text environments.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"evalharness {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"evalharness.cli.{name}").register(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script: returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal of another encoding shows \\u2026 for what it cannot, instead of ending the command.
            stream.reconfigure(errors="backslashreplace")
    parser = make_parser()
    args = parser.parse_args(arguments)
    try:
        status: int = args.run(args)
        sys.stdout.flush()
    except EvalharnessError as error:
        if args.debug:
            raise
        print(f"evalharness: {error}", file=sys.stderr)
        return 3 if isinstance(error, InfrastructureError) else 2
    except KeyboardInterrupt:
        print("evalharness: interrupted; the same command continues", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (`head`, a pager) has had enough. Keep the interpreter from complaining at its exit.
        sys.stderr.close()
        return 0
    return status
