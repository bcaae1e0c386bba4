"""`evalharness refine grounded | from-runs | mix | read | export | stats`: training data and what trainers take."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.cli.common import add_data_option, add_json_option, data_folder, titles, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from evalharness.refine.grounded import Order

_Commands = argparse._SubParsersAction


def make_console(*, stderr: bool) -> Console:
    from evalharness.report import terminal

    return terminal.make_console(stderr=stderr)


def say(text: str) -> None:
    from evalharness.report import terminal

    terminal.say(text)


_GROUNDED = """\
Trajectories with errors and their correction, made in the real simulators. The plan is the environment's own; errors
are put into it on purpose (a name that does not exist, the right action in the wrong place, an action of no use), the
world's own answer follows, then the correction. The world decides what was an error; the whole is replayed by the
loop that evaluates and must succeed. Tasks are those of open suites N, N+1, ... as many as are needed; what is in
suite seed 0 or the published suite is refused. The same command gives the same bytes, and continues after a kill.
"""


_FROM_RUNS = """\
The good episodes of runs as training data: rejection sampling. A turn that the world refused, that had no action, or
that was valid and changed nothing is marked as an error and not trained. RUN is a run folder, or the folder of a
Best-of-N study. Episodes of suite seed 0 and of published suites are left out: who trains on them cannot be evaluated
on them.
"""
_MIX = """\
Join data sets by ratio: `mix grounded.jsonl:0.8 general.json:0.2 -n 10000 -o FILE`. Drawn without replacement and
shuffled, both by seed. Each FILE is in our own format or in one that `refine read` takes.
"""
_READ = """\
Take training data as others write it (ShareGPT or messages layout; JSON lines, a JSON list, or parquet) and write it
in our format. What does not fit is named, counted, and left out.
"""
_EXPORT = """\
Write a data set as trainers take it, with the turns that are trained:

  messages          JSON lines of messages with loss: true or false (ms-swift)
  sharegpt          ShareGPT with loss, and a block for an Axolotl configuration
  llamafactory      a record for each trained turn, for mask_history: true, and dataset_info.json (LLaMA-Factory 0.9);
                    a conversation is written once for each of its trained turns: the cost is quadratic
  llamafactory-v1   messages with loss_weight (LLaMA-Factory's v1 engine), and dataset_info.json
  tokens            token ids and labels as parquet, made with the template of --model by the environment of
                    `evalharness server install` (TRL takes them as they are)

Modes: full trains every right turn; no_refine_loss leaves out the first right turn after errors; no_refine_data takes
errors and their correction out of the conversation; all_turns trains the errors, too.
"""
_STATS = """\
How many turns of a data set are errors, by the length of the runs they stand in: as shares of all turns (user and
assistant) and of the player's. With -o DIR also as a figure (PNG, SVG, CSV).
"""


def register(commands: _Commands[argparse.ArgumentParser]) -> None:
    _register_grounded(commands)
    _register_from_runs(commands)
    _register_mix(commands)
    _register_read(commands)
    _register_export(commands)
    _register_stats(commands)


def _register_grounded(commands: _Commands[argparse.ArgumentParser]) -> None:

    parser = commands.add_parser(
        "grounded", help="trajectories with errors, made in the real simulators", description=_GROUNDED
    )
    parser.add_argument(
        "--tasks", default="all", metavar="LIST", help="families, separated by commas (default: all)"
    )
    parser.add_argument(
        "--suite-seed",
        type=int,
        required=True,
        metavar="N",
        help="the first open suite to take tasks of; not 0",
    )
    parser.add_argument(
        "-n", "--samples", type=int, required=True, metavar="N", help="trajectories, in equal shares"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the data set, FILE.jsonl"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of errors and wordings (default: 0)"
    )
    parser.add_argument(
        "--per-task", type=int, metavar="N",
        help="trajectories of one task, with different errors and wordings (default: 2 to 8, by family)",
    )  # fmt: skip
    parser.add_argument(
        "--error-runs", default="1-3", metavar="A-B",
        help="runs of one to four errors in a trajectory, least and most; 0 for none (default: 1-3)",
    )  # fmt: skip
    parser.add_argument("--perturb", metavar="NAME", help="in other words, as in: run --perturb P1")
    parser.add_argument(
        "--max-turns",
        type=int,
        metavar="N",
        help="limit of a trajectory, errors included (default: that of a run)",
    )
    parser.add_argument(
        "--thoughts", metavar="MODEL",
        help="have a model write the thoughts in hindsight, checked for naming no future: what `run --model` takes "
        "(default: by rule)",
    )  # fmt: skip
    parser.add_argument("--model-name", metavar="NAME", help="the name an endpoint serves the model by")
    parser.add_argument(
        "--api-key-env", metavar="VAR", help="environment variable that holds the endpoint's key"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes of each family (default: cores)")
    parser.add_argument("--force", action="store_true", help="write over FILE when it was made otherwise")
    add_data_option(parser)
    add_json_option(parser)
    parser.set_defaults(run=_grounded)


def _families(selection: str) -> tuple[str, ...]:
    from envs import specs
    from evalharness.errors import UserError, nearest

    known = [family for family, spec in specs().items() if spec.expected.get("open")]
    if selection == "all":  # the same families as in `run --tasks all`
        return tuple(sorted(family for family in known if specs()[family].in_all))
    chosen = {name.strip() for name in selection.split(",")}
    for name in sorted(chosen):
        if name not in known:
            raise UserError(f"--tasks: unknown family {name!r}{nearest(name, sorted(known))}")
    return tuple(sorted(chosen))


def _error_plan(text: str) -> Any:
    from evalharness.errors import UserError
    from evalharness.refine.draft import ErrorPlan

    least, _, most = text.partition("-")
    if not least.isdecimal() or not (most or least).isdecimal() or int(least) > int(most or least):
        raise UserError(f"--error-runs {text!r}: write a number or a range, as in 1-3")
    return ErrorPlan((int(least), int(most or least))) if int(most or least) else None


def _order(args: argparse.Namespace) -> Order:
    from envs.base import MAX_TURNS
    from evalharness.protocol.perturb import normal_name
    from evalharness.refine.grounded import Order

    return Order(
        families=_families(args.tasks),
        suite_seed=args.suite_seed,
        samples=args.samples,
        seed=args.seed,
        per_task=args.per_task,
        errors=_error_plan(args.error_runs),
        perturb=normal_name(args.perturb) if args.perturb else None,
        max_turns=args.max_turns or MAX_TURNS,
        thoughts=(args.model_name or args.thoughts) if args.thoughts else "rule",
    )


def _grounded(args: argparse.Namespace) -> int:
    import time

    from envs import specs
    from evalharness.policy.event_loop import run_to_end
    from evalharness.refine.bars import watching
    from evalharness.refine.grounded import FamilyCount, Progress, check, is_made, make
    from evalharness.refine.hindsight import thinking
    from evalharness.refine.sample import read_manifest

    order = _order(args)
    check(order)
    out = make_console(stderr=args.json == "-")
    if not args.force and is_made(order, args.output):
        out.print(f"{args.output} is made already", highlight=False, soft_wrap=True)
        manifest = read_manifest(args.output) or {}
        write_json(args.json, manifest)
        return 0
    names, started = titles(), time.monotonic()
    progress = Progress({family: FamilyCount(n) for family, n in order.shares().items()})

    async def making() -> dict[str, Any]:
        async with thinking(
            args.thoughts, args.model_name, args.api_key_env, order.seed, args.output
        ) as think:
            return await make(
                order, specs(), args.output,
                data=data_folder(args), workers=args.workers, progress=progress, think=think,
            )  # fmt: skip

    with watching(progress, names, make_console(stderr=True)):
        manifest = run_to_end(making())
    _show_grounded(out, manifest, names)
    out.print(f"wrote {args.output} in {time.monotonic() - started:.0f} s", highlight=False, soft_wrap=True)
    write_json(args.json, manifest)
    return 0


def _show_grounded(out: Console, manifest: Mapping[str, Any], names: Mapping[str, str]) -> None:
    for family, row in manifest["made"]["families"].items():
        refused = sum(row["overlap_refused"].values())
        seeds = row["suite_seeds"]
        span = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]}-{seeds[-1]}" if seeds else "none"
        out.print(
            f"{names[family]:<13}{row['samples']:>6} of {row['tasks']} tasks, suite seed {span}; "
            f"{refused} tasks refused as evaluated or used already, "
            f"{sum(row['not_made'].values())} trajectories not made",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
    print_counts(out, manifest["counts"])


def print_counts(out: Console, counts: Mapping[str, Any]) -> None:
    """Three lines on what a data set holds."""
    turns = max(counts["player_turns"], 1)
    kinds = ", ".join(f"{kind} {n:,}" for kind, n in counts["errors"].items()) or "none"
    out.print(
        f"{counts['samples']:,} conversations, {counts['player_turns']:,} player turns, "
        f"{counts['trained_turns']:,} of them trained\n"
        f"errors: {counts['error_turns']:,} turns, {100 * counts['error_turns'] / turns:.1f} % of player turns "
        f"({kinds}); {counts['refine_turns']:,} corrections",
        highlight=False, soft_wrap=True, markup=False,
    )  # fmt: skip


def _say_broken(path: Path, broken: list[Any]) -> None:
    from evalharness.refine.sample import say_broken

    for line in say_broken(path, broken):
        say(f"evalharness: {line}")


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the data set, FILE.jsonl"
    )


def _register_from_runs(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "from-runs", help="the good episodes of runs as data", description=_FROM_RUNS
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run folders")
    parser.add_argument(
        "--keep", default="success", metavar="RULE", help="success, or 'progress>=X' (default: success)"
    )
    parser.add_argument(
        "--per-task", type=int, metavar="N", help="of each run and task at most the N shortest episodes"
    )
    parser.add_argument(
        "--evaluated", action="store_true", help="also take episodes of tasks that models are evaluated on"
    )
    _add_output(parser)
    add_json_option(parser)
    parser.set_defaults(run=_from_runs)


def _from_runs(args: argparse.Namespace) -> int:

    from evalharness.errors import UserError
    from evalharness.records.store import read_manifest
    from evalharness.refine.from_runs import Tally, parse_keep, run_folder, samples_of
    from evalharness.refine.sample import write_samples

    keep, tally = parse_keep(args.keep), Tally()
    if args.per_task is not None and args.per_task < 1:
        raise UserError("--per-task is at least 1")
    digests = {path.name: read_manifest(run_folder(path))["digest"] for path in args.runs}
    chosen = list(samples_of(args.runs, keep, tally, per_task=args.per_task, evaluated=args.evaluated))
    if not chosen:
        reasons = (
            ", ".join(f"{n} {reason}" for reason, n in sorted(tally.not_kept.items())) or "there are none"
        )
        raise UserError(f"no episode was kept of {tally.episodes} ({reasons}); see --keep and --evaluated")
    made = {
        "command": "refine from-runs",
        "keep": args.keep,
        "per_task": args.per_task,
        "evaluated_tasks": args.evaluated,
        "runs": digests,
        "tally": tally.to_json(),
    }
    manifest = write_samples(args.output, chosen, made)
    out = make_console(stderr=args.json == "-")
    _say(out, f"{tally.kept:,} of {tally.episodes:,} episodes kept")
    for reason, count in sorted(tally.not_kept.items()):
        _say(out, f"  {count:,} left out: {reason}")
    print_counts(out, manifest["counts"])
    _say(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def _say(out: Console, text: str) -> None:
    out.print(text, highlight=False, soft_wrap=True, markup=False)


def _register_mix(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("mix", help="join data sets by ratio", description=_MIX)
    parser.add_argument("parts", nargs="+", metavar="FILE[:SHARE]", help="data sets; a share is 1 by default")
    parser.add_argument(
        "-n", "--samples", type=int, metavar="N", help="conversations in all (default: as many as fit)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of drawing and order (default: 0)")
    _add_output(parser)
    add_json_option(parser)
    parser.set_defaults(run=_mix)


def _mix(args: argparse.Namespace) -> int:

    from evalharness.errors import UserError
    from evalharness.refine.mix import mix, parse_part
    from evalharness.refine.sample import write_samples

    if args.samples is not None and args.samples < 1:
        raise UserError("-n is at least 1")
    samples, made, unfit = mix([parse_part(text) for text in args.parts], args.seed, args.samples)
    manifest = write_samples(args.output, samples, made)
    out = make_console(stderr=args.json == "-")
    for path, found in unfit.items():
        _say_unfit(path, found)
    for part in made["parts"]:
        _say(out, f"{part['file']}: {part['drawn']:,} of {part['of']:,}")
    print_counts(out, manifest["counts"])
    _say(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def _say_unfit(path: Path, unfit: Any) -> None:

    for line in unfit.lines():
        say(f"evalharness: {path}: {line}"[:300])


def _register_read(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("read", help="take data in other layouts", description=_READ)
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON lines, a JSON list, or parquet")
    parser.add_argument(
        "--source", default="general", metavar="NAME", help="what the data is (default: general)"
    )
    _add_output(parser)
    add_json_option(parser)
    parser.set_defaults(run=_read)


def _read(args: argparse.Namespace) -> int:
    import hashlib

    from evalharness.errors import UserError
    from evalharness.refine.layouts import Unfit, read_any
    from evalharness.refine.sample import write_samples
    from evalharness.report.text import printable

    unfit = Unfit()
    samples = list(read_any(args.file, unfit, args.source))
    fields = ", ".join(printable(name, single_line=True)[:40] for name, _ in unfit.fields.most_common(20))
    if not samples:
        raise UserError(
            f"{args.file} holds no conversation in a layout that is known here. Its fields: {fields or 'none'}. "
            + "; ".join(unfit.lines())
        )
    with args.file.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    made = {
        "command": "refine read",
        "file": args.file.name,
        "file_sha256": digest,
        "left_out": dict(sorted(unfit.reasons.items())),
    }
    manifest = write_samples(args.output, samples, made)
    out = make_console(stderr=args.json == "-")
    _say(out, f"fields: {fields}")
    _say_unfit(args.file, unfit)
    print_counts(out, manifest["counts"])
    _say(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def _register_export(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "export",
        help="as trainers take it",
        description=_EXPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="data sets")
    parser.add_argument(
        "--format", required=True, help="see above",
        choices=("messages", "sharegpt", "llamafactory", "llamafactory-v1", "tokens"),
    )  # fmt: skip
    parser.add_argument(
        "--mode", default="full", choices=("full", "no_refine_loss", "no_refine_data", "all_turns"),
        help="what is trained (default: full)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the files"
    )
    parser.add_argument(
        "--model", type=Path, metavar="DIR", help="checkpoint folder whose template makes the tokens"
    )
    parser.add_argument(
        "--max-length", type=int, default=0, metavar="N",
        help="tokens; longer conversations end with the last whole turn that fits (default: no limit)",
    )  # fmt: skip
    add_json_option(parser)
    parser.set_defaults(run=_export)


def _export(args: argparse.Namespace) -> int:

    from evalharness.errors import UserError
    from evalharness.refine.export import export
    from evalharness.refine.sample import BrokenLine

    if args.max_length < 0:
        raise UserError("--max-length is at least 0")
    broken: dict[Path, list[BrokenLine]] = {}
    done = export(
        args.files, args.format, args.mode, args.output,
        model=args.model, max_length=args.max_length, broken=broken,
        on_line=lambda line: say(f"evalharness: {line}"),
    )  # fmt: skip
    out = make_console(stderr=args.json == "-")
    for path, lines in broken.items():
        _say_broken(path, lines)
    _say(
        out,
        f"{done.records:,} records of {done.conversations:,} conversations, {done.trained_turns:,} trained turns",
    )
    for reason, count in sorted(done.left_out.items()):
        _say(out, f"  {count:,} left out: {reason}")
    if args.format == "llamafactory" and done.characters:
        _say(out, f"a record a trained turn: {done.written_characters / done.characters:.1f} times the text")
    if (tokens := done.tokens) is not None:
        _say(
            out,
            f"{tokens.tokens:,} tokens, {tokens.trained_tokens:,} of them trained; {tokens.ended_turns:,} trained "
            f"turns end with their end-of-turn token; {tokens.cut_turns:,} turns cut off by --max-length",
        )
        for reason, count in sorted(tokens.refused.items()):
            _say(out, f"  {count:,} left out: {reason}")
    _say(out, f"wrote {', '.join(str(path) for path in done.files)}")
    write_json(args.json, done.to_json())
    return 0


def _register_stats(commands: _Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("stats", help="how many turns are errors", description=_STATS)
    parser.add_argument("file", type=Path, metavar="FILE", help="data set")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="also a figure, in this folder")
    add_json_option(parser)
    parser.set_defaults(run=_stats)


def _stats(args: argparse.Namespace) -> int:

    from evalharness.errors import UserError
    from evalharness.refine.sample import BrokenLine, Counts, iter_samples
    from evalharness.refine.stats import ErrorTurns

    broken: list[BrokenLine] = []
    found, counts = ErrorTurns(), Counts()
    for sample in iter_samples(args.file, broken):
        found.add(sample)
        counts.add(sample)
    _say_broken(args.file, broken)
    if not found.samples:
        raise UserError(f"{args.file} holds no sample of training data (see: evalharness refine read --help)")
    out = make_console(stderr=args.json == "-")
    print_counts(out, counts.to_json())
    _say(out, "run of errors    runs   turns   of all turns   of player turns")
    for row in found.rows():
        _say(
            out,
            f"{row['run_length']:<12}{row['runs']:>9,}{row['turns']:>8,}{row['share_of_turns']:>14.1%}"
            f"{row['share_of_player_turns']:>18.1%}",
        )
    if args.output is not None:
        from evalharness.cli.diversity import _save
        from evalharness.refine.error_turns import draw_error_turns
        from evalharness.report import plots

        with plots.style():
            _save(args.output, "error_turns", found.rows(), draw_error_turns(found))
    write_json(args.json, {"counts": counts.to_json(), **found.to_json()})
    return 0
