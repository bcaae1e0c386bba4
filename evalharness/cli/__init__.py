"""The command line. Each command is a small module whose docstring is its help (`parser.add_command`). A command
imports its modules when it runs, so `--help` is fast."""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TextIO

from evalharness.base.errors import DamageWarning, EvalharnessError, InfrastructureError
from evalharness.base.extensions import COMMANDS as ADDED
from evalharness.base.extensions import load_extensions
from evalharness.base.version import __version__
from evalharness.cli.parser import CommandParser, add_command, argument, walk_commands

COMMANDS = (
    "run",
    "sweep",
    "bon",
    "checkpoints",
    "show",
    "compare",
    "report",
    "leaderboard",
    "verify",
    "export",
    "data",
    "server",
    "doctor",
)
"""The commands of the core, in the order in which the help lists them."""


def find_commands() -> dict[str, ModuleType]:
    """Map command names to modules. If an entry point has the name of a command of the core, ignore the entry point."""
    core = {name: importlib.import_module(f"evalharness.cli.{name.replace('-', '_')}") for name in COMMANDS}
    return core | {name: module for name, module in load_extensions(ADDED).items() if name not in core}


_EPILOG = """\
exit status: 0 done, 1 a check found something, 2 an error that you can fix,
3 stopped early, 130 interrupted with Ctrl-C, 143 terminated

first steps:
  evalharness server install --cpu    install vLLM (--gpu with a GPU)
  evalharness run --model demo --suite open --draw 2    try a small model
  evalharness run --model ckpt/ --tasks all             evaluate your model
"""


_SHORT = """\
evalharness: evaluate LLM agents in text environments

  run           evaluate a model: evalharness run --model demo --suite open
  show          list runs; show scores or a trajectory: evalharness show RUN
  compare       test two runs, paired by task: evalharness compare RUN OTHER
  report        write runs with every trajectory as one HTML page
  leaderboard   show your runs and published results in one table
  sweep, bon    play several perturbations or agents; play Best-of-N
  checkpoints   evaluate every checkpoint of a training
  paper         the AgentRefine paper's tables and figures, with your rows
  refine, tune  make training data; train a model
  doctor        check this machine, and name what is missing

all commands: evalharness --help"""


def _list_extensions(added: Mapping[str, ModuleType]) -> str:
    """Return one line of help for each command outside the core."""
    lines = [f"  {name:<19} {module.HELP}\n" for name, module in added.items()]
    return "".join(["training and research:\n", *lines, "\n"]) if lines else ""


def make_parser(*, whole: bool = True) -> CommandParser:
    """Make the parser of all commands. If `whole` is false, add a command's options only when this command is given."""
    modules = find_commands()
    added = {name: module for name, module in modules.items() if name not in COMMANDS}
    parser = CommandParser(
        prog="evalharness",
        description="Evaluate LLM agents in text environments.",
        epilog=_list_extensions(added) + _EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"evalharness {__version__}")
    argument(parser, "--debug", "show the traceback of an error")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in modules.items():
        add_command(commands, name, module, listed=name not in added)
    if whole:
        list(walk_commands(parser))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # If the terminal's encoding lacks a character, print an escape such as \\u2026 instead of failing.
            stream.reconfigure(errors="backslashreplace")
    parser = make_parser(whole=False)
    if not (sys.argv[1:] if arguments is None else arguments):
        from evalharness.base.terminal import say

        say(_SHORT, stderr=False)
        return 0
    args = parser.parse_args(arguments)
    args.typed = sys.argv[1:] if arguments is None else list(arguments)
    log = logging.getLogger("evalharness")
    log.handlers = [_Lines()]
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        with _warnings_as_lines():
            status: int = args.run(args)
        sys.stdout.flush()
    except EvalharnessError as error:
        _say(error, debug=args.debug)
        return 3 if isinstance(error, InfrastructureError) else 2
    except KeyboardInterrupt as stop:
        _say(stop.args[0] if stop.args else "interrupted; the same command continues")
        return 130
    except BrokenPipeError:
        # The process that reads the output (`head`, a pager) has ended. Prevent Python's error message at exit.
        sys.stderr.close()
        return 0
    except OSError as error:
        if args.debug or (error.filename is None and error.errno != errno.ENOSPC):
            raise
        _say(f"{'cannot write' if error.filename is None else repr(error.filename)}: {error.strerror}")
        with suppress(OSError):  # otherwise Python flushes again at its exit and prints an error
            sys.stdout.flush()
        return 2
    return status


_LONGEST = 8000
"""Maximum characters of a message. A message can quote a text of any length from a file."""


def _say(what: Exception | str, *, debug: bool = False) -> None:
    """Print an error or message in one line; with `debug` print the traceback."""
    from evalharness.base.terminal import say
    from evalharness.base.text import printable

    if debug:
        import traceback

        say(traceback.format_exc())
    else:
        text = printable(str(what))
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} [...] {text[-_LONGEST // 2 :]}"
        say(f"evalharness: {text}")


class _Lines(logging.Handler):
    """Prints each record of `logging.getLogger("evalharness")` as a line on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(record.getMessage())


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each different DamageWarning once, as one line instead of Python's format."""
    printed: set[str] = set()

    with warnings.catch_warnings():
        python_show = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, DamageWarning):
                python_show(message, category, filename, lineno, file, line)
            elif str(message) not in printed:
                printed.add(str(message))
                _say(f"warning: {message}")

        warnings.simplefilter("always", DamageWarning)
        warnings.showwarning = show
        yield
