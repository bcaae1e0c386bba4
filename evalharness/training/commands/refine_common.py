"""Options, inputs and outputs that the commands on training data share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.cli.common import add_data_option, data_folder
from evalharness.cli.output import note, results_console, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from evalharness.training.datasets.modes import Mode
    from evalharness.training.datasets.overlap import Exclusion


def print_counts(out: Console, counts: Mapping[str, Any]) -> None:
    """Print the counts of a data set in three lines."""
    turns = max(counts["player_turns"], 1)
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in counts["errors"].items()) or "none"
    out.print(
        f"{counts['samples']:,} conversations, {counts['player_turns']:,} player turns, "
        f"{counts['trained_turns']:,} of them trained ({counts.get('trained_characters', 0):,} characters)\n"
        f"errors: {counts['error_turns']:,} turns, {100 * counts['error_turns'] / turns:.1f} % of player turns "
        f"({kinds}); {counts['refine_turns']:,} corrections",
        soft_wrap=True,
    )  # fmt: skip


def show_data_set(args: argparse.Namespace, lines: Iterable[str], manifest: Mapping[str, Any]) -> int:
    """Print the lines and counts of a command that wrote a data set, and write its JSON. Return the exit status."""
    out = results_console(args)
    for line in lines:
        print_on(out, line)
    print_counts(out, manifest["counts"])
    print_on(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def print_broken_lines(path: Path, broken: list[Any]) -> None:
    from evalharness.training.datasets.conversation import describe_broken

    for line in describe_broken(path, broken):
        note(line)


def print_unfit(path: Path, report: Any) -> None:
    """Print which records and fields of a training file were left out or changed while reading it."""
    for line in report.all_lines():
        note(f"{path}: {line}"[:1000])


_MODES: Mapping[Mode, str] = {
    "full": "every right turn",
    "no_refine_loss": "without the first right turn after errors",
    "no_refine_data": "errors and corrections are cut out; a conversation that cannot be cut is left out",
    "all_turns": "the errors, too",
}


def add_mode(parser: argparse._ActionsContainer) -> None:
    meanings = "; ".join(f"{mode}: {meaning}" for mode, meaning in _MODES.items())
    argument(parser, "--mode", f"trained turns; {meanings} (default: full)", choices=_MODES, default="full")


def add_chat_template(parser: argparse._ActionsContainer) -> None:
    argument(
        parser,
        "--chat-template NAME|FILE",
        "llama3, mistral, chatml, or a Jinja file; for base models (default: the model's own)",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    argument(parser, "-o --output FILE", "the data set, FILE.jsonl", required=True)


def add_exclusion(parser: argparse.ArgumentParser, *, evaluated: bool = True) -> None:
    """Add the options that say which tasks to leave out of training data. `evaluated` adds --allow-eval-tasks."""
    argument(
        parser,
        "--exclude-suite-seeds LIST",
        "also leave out tasks of these open suites, such as 1-4,9, and tasks that equal them up to renaming",
    )
    if evaluated:
        argument(
            parser,
            "--allow-eval-tasks",
            "also take tasks of suite seed 0 and of published suites; a model trained on them cannot "
            "be evaluated on them",
        )
    add_data_option(parser)


def parse_excluded_seeds(args: argparse.Namespace) -> tuple[int, ...]:
    from evalharness.suites.selection import parse_seeds

    text = args.exclude_suite_seeds
    return () if text is None else tuple(parse_seeds("--exclude-suite-seeds", text))


def make_exclusion(args: argparse.Namespace) -> Exclusion:
    from evalharness.training.datasets.overlap import Exclusion

    return Exclusion(parse_excluded_seeds(args), data_folder(args), args.allow_eval_tasks)


def print_on(out: Console, text: str) -> None:
    out.print(text, soft_wrap=True)
