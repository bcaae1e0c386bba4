"""Serve the page of `evalharness report` for a run in progress, on loopback. Ctrl-C ends it."""

from __future__ import annotations

import argparse

from evalharness.base.errors import UserError
from evalharness.cli.parser import argument
from evalharness.cli.report import add_page_arguments, chosen

HELP = "look at a run in progress in a browser"


def add_options(parser: argparse.ArgumentParser) -> None:
    add_page_arguments(parser)
    argument(parser, "--port N", "port on 127.0.0.1 (default: a free one)", default=0)


def run(args: argparse.Namespace) -> int:
    from evalharness.runs.watch_page import serve

    if not 0 <= args.port <= 65535:
        raise UserError(f"--port {args.port}: a port is a number up to 65535, or 0 for a free one")
    serve(args.runs, port=args.port, prompts=args.prompts, chosen=chosen(args))
    return 0
