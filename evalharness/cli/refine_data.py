"""`evalharness refine from-runs | mix | read | export | stats`: training data and what trainers take."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.cli.common import add_json_option, write_json

if TYPE_CHECKING:
    pass
from evalharness.cli.refine_common import (
    Commands,
    add_output,
    make_console,
    name_broken_lines,
    print_counts,
    say,
    say_on,
)

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


def register(commands: Commands[argparse.ArgumentParser]) -> None:
    _register_from_runs(commands)
    _register_mix(commands)
    _register_read(commands)
    _register_export(commands)
    _register_stats(commands)


def _register_from_runs(commands: Commands[argparse.ArgumentParser]) -> None:
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
    add_output(parser)
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
    say_on(out, f"{tally.kept:,} of {tally.episodes:,} episodes kept")
    for reason, count in sorted(tally.not_kept.items()):
        say_on(out, f"  {count:,} left out: {reason}")
    print_counts(out, manifest["counts"])
    say_on(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def _register_mix(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("mix", help="join data sets by ratio", description=_MIX)
    parser.add_argument("parts", nargs="+", metavar="FILE[:SHARE]", help="data sets; a share is 1 by default")
    parser.add_argument(
        "-n", "--samples", type=int, metavar="N", help="conversations in all (default: as many as fit)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of drawing and order (default: 0)")
    add_output(parser)
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
        say_on(out, f"{part['file']}: {part['drawn']:,} of {part['of']:,}")
    print_counts(out, manifest["counts"])
    say_on(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def _say_unfit(path: Path, unfit: Any) -> None:

    for line in unfit.lines():
        say(f"evalharness: {path}: {line}"[:300])


def _register_read(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("read", help="take data in other layouts", description=_READ)
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON lines, a JSON list, or parquet")
    parser.add_argument(
        "--source", default="general", metavar="NAME", help="what the data is (default: general)"
    )
    add_output(parser)
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
    say_on(out, f"fields: {fields}")
    _say_unfit(args.file, unfit)
    print_counts(out, manifest["counts"])
    say_on(out, f"wrote {args.output}")
    write_json(args.json, manifest)
    return 0


def _register_export(commands: Commands[argparse.ArgumentParser]) -> None:
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
        name_broken_lines(path, lines)
    say_on(
        out,
        f"{done.records:,} records of {done.conversations:,} conversations, {done.trained_turns:,} trained turns",
    )
    for reason, count in sorted(done.left_out.items()):
        say_on(out, f"  {count:,} left out: {reason}")
    if args.format == "llamafactory" and done.characters:
        say_on(
            out, f"a record a trained turn: {done.written_characters / done.characters:.1f} times the text"
        )
    if (tokens := done.tokens) is not None:
        say_on(
            out,
            f"{tokens.tokens:,} tokens, {tokens.trained_tokens:,} of them trained; {tokens.ended_turns:,} trained "
            f"turns end with their end-of-turn token; {tokens.cut_turns:,} turns cut off by --max-length",
        )
        for reason, count in sorted(tokens.refused.items()):
            say_on(out, f"  {count:,} left out: {reason}")
    say_on(out, f"wrote {', '.join(str(path) for path in done.files)}")
    write_json(args.json, done.to_json())
    return 0


def _register_stats(commands: Commands[argparse.ArgumentParser]) -> None:
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
    name_broken_lines(args.file, broken)
    if not found.samples:
        raise UserError(f"{args.file} holds no sample of training data (see: evalharness refine read --help)")
    out = make_console(stderr=args.json == "-")
    print_counts(out, counts.to_json())
    say_on(out, "run of errors    runs   turns   of all turns   of player turns")
    for row in found.rows():
        say_on(
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
