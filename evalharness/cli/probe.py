"""One reply to each of many prefixes that end in an error: does the model try another action, does the world take it,
can the task still be solved? The simulators decide. The same command continues. docs/grounded-data.md
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError, at_least
from evalharness.base.reading import sha256_of
from evalharness.cli.common import (
    add_data_option,
    add_json_option,
    data_folder,
    families_of,
    open_families,
    titles,
)
from evalharness.cli.output import make_console, require_writable, show_outcome
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from evalharness.config import PolicyConfig
    from evalharness.training.probe.prefixes import Prefix

HELP = "what a model does right after an error"
_COUNT = 300
_MAX_TOKENS = 256


def add_options(parser: argparse.ArgumentParser) -> None:
    from evalharness.cli.options import SERVING, add_fields, add_model

    argument(parser, "--prefixes FILE", "a data set of refine grounded (default: made once)")
    argument(
        parser,
        "--tasks LIST",
        "families, or FAMILY:kind=KIND, separated by commas (default: those of the held-out score, or all of "
        "--prefixes)",
    )
    argument(
        parser, "-n N", f"prefixes, in equal shares of the families (default: {_COUNT}, or all of --prefixes)"
    )
    argument(parser, "-o --output DIR", "folder (default: one under results/)")
    add_model(parser, "model", "the model")
    argument(parser, "--temperature T", "default: 0, greedy", default=0.0)
    argument(parser, "--seed N", "of sampling", default=0)
    how = parser.add_argument_group("how to do it")
    add_fields(how, ("max_tokens", *SERVING), max_tokens=_MAX_TOKENS)
    add_data_option(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.cli.options import attempts_of
    from evalharness.models.work import watch_work
    from evalharness.training.probe.probing import Probe, run_probe

    require_writable("--json", args.json)
    model = asked_model(args)
    path, prefixes = chosen_prefixes(args)
    what = Probe(model, prefixes, sha256_of(path), data_folder(args), args.output, attempts_of(args))
    probed = run_probe(what, watch=lambda progress: watch_work(progress, make_console(stderr=True)))
    return show_outcome(args, probed, table(probed.summary), "prefixes are left")


def chosen_prefixes(args: argparse.Namespace) -> tuple[Path, list[Prefix]]:
    """(their file, made now where there is none; those that are asked). Raises UserError."""
    from evalharness.training.probe.prefixes import read_prefixes, shares

    at_least(1, n=args.n)
    chosen = _chosen_kinds(args)
    path = args.prefixes or _made(tuple(sorted(chosen or ())), args.n or _COUNT)
    prefixes = [p for p in read_prefixes(path) if chosen is None or p.kind_in(chosen.get(p.family, ()))]
    if chosen is not None:
        _require_all(chosen, prefixes, path)
    return path, shares(prefixes, args.n) if args.prefixes and args.n else prefixes


def asked_model(args: argparse.Namespace) -> PolicyConfig:
    """Raises UserError for what cannot be asked."""
    from evalharness.cli.options import policy_of
    from evalharness.models.asking import refuse_scripted

    model = policy_of(args, "model", max_tokens=args.max_tokens or _MAX_TOKENS)
    refuse_scripted(model, "--model")
    return model


def _chosen_kinds(args: argparse.Namespace) -> dict[str, list[str]] | None:
    """Family -> its kinds, with `*` for anything. None: all that a file has. Raises UserError."""
    if args.tasks is None:
        held_out = (family for family, spec in open_families().items() if spec.held_out)
        return None if args.prefixes else {family: ["*"] for family in held_out}
    chosen: dict[str, list[str]] = {}
    for part in args.tasks.split(","):
        family, colon, condition = part.strip().partition(":")
        name, _, kind = condition.partition("=")
        if colon and not (name == "kind" and kind):
            raise UserError(f"--tasks {part.strip()}: write {family} or {family}:kind=KIND")
        chosen.setdefault(family, []).append(kind or "*")
    families_of(",".join(chosen), open_families())
    return chosen


def _require_all(chosen: Mapping[str, Sequence[str]], prefixes: Sequence[Prefix], path: Path) -> None:
    """Raises UserError for a family or kind of `--tasks` that has no prefix."""
    for family, kinds in chosen.items():
        for kind in kinds:
            if not any(p.family == family and p.kind_in([kind]) for p in prefixes):
                said = family if kind == "*" else f"{family}:kind={kind}"
                raise UserError(f"--tasks {said}: {path} has no prefix of it")


def _made(families: tuple[str, ...], count: int) -> Path:
    from evalharness.training.grounded.grounded import check
    from evalharness.training.grounded.making import watch_making
    from evalharness.training.probe.prefixes import made_prefixes, order_of

    order = order_of(families, count)
    check(order)
    progress = order.counts()
    with watch_making(progress, titles(), make_console(stderr=True)):
        return made_prefixes(families, count, progress)


def table(summary: Mapping[str, Any]) -> RenderableType:
    from rich.console import Group

    from evalharness.base.terminal import plain_table, words
    from evalharness.results.html.document import percent
    from evalharness.training.probe.probing import FIGURES

    table = plain_table(words("after an error, %"), "n", "another action", "valid", "still solvable", gap=2)
    names = titles()
    for family, row in summary["families"].items():
        found = [row[figure] for figure in FIGURES if figure in row]
        rates = [percent(figure["rate"], figure["ci95"]) for figure in found]
        table.add_row(names.get(family, family), str(row["n"]), *rates)
        table.add_row("  floor", "", *(percent(figure["floor"]) for figure in found), style="dim")
    note = "floor: a random valid action; solvable: shown by the plan or by the family's agent"
    return Group(table, note)
