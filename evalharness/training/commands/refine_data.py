"""`evalharness refine from-runs | mix | read | export`: make data sets from runs and files, and write them for other
trainers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evalharness.base.errors import UserError, at_least
from evalharness.base.text import printable
from evalharness.cli.common import add_json_option
from evalharness.cli.output import note, results_console, write_json
from evalharness.cli.parser import Commands, argument, subcommand
from evalharness.training.commands.refine_common import (
    add_chat_template,
    add_exclusion,
    add_mode,
    add_output,
    make_exclusion,
    print_broken_lines,
    print_on,
    print_unfit,
    show_data_set,
)

if TYPE_CHECKING:
    from evalharness.training.datasets.overlap import Exclusion

_EXPORT = """\
Write a data set for another trainer, with marks of the trained turns:

  messages      JSON lines of messages with loss: true or false, and swift.sh
                (ms-swift)
  sharegpt      ShareGPT with loss, and axolotl.yaml (Axolotl)
  llamafactory  messages with loss_weight, and llamafactory.yaml
                (LLaMA-Factory's v1 engine)
  tokens        token ids and labels as parquet (TRL) by --model's template;
                needs `evalharness server install`
"""


def register(commands: Commands) -> None:
    parser = subcommand(commands, "from-runs", _from_runs, "make data from good episodes of runs")
    argument(parser, "runs RUN", "run folders", nargs="+")
    argument(parser, "--keep RULE", "keep episodes with success, or with 'progress>=X'", default="success")
    argument(parser, "--per-task N", "at most the N shortest episodes of each run and task")
    add_exclusion(parser)
    add_output(parser)
    add_json_option(parser)

    parser = subcommand(commands, "mix", _mix, "join data sets by ratio")
    argument(parser, "parts FILE[:SHARE]", "data sets; the default share is 1", nargs="+")
    argument(parser, "-n --conversations N", "conversations in all (default: as many as fit)")
    argument(parser, "--all", "take every conversation of each file; no shares")
    argument(parser, "--seed N", "seed of drawing and order", default=0)
    add_exclusion(parser)
    add_output(parser)
    add_json_option(parser)

    parser = subcommand(commands, "read", _read, "read data in other layouts")
    argument(parser, "file FILE", "JSON lines, JSON or parquet, also .gz, or a folder of such files")
    argument(parser, "--source NAME", "origin of the data", default="general")
    add_exclusion(parser)
    add_output(parser)
    add_json_option(parser)

    parser = subcommand(commands, "export", _export, "write data for other trainers", _EXPORT)
    argument(parser, "files FILE", "data sets", nargs="+")
    argument(
        parser,
        "--format {messages,sharegpt,llamafactory,tokens}",
        "see above",
        required=True,
    )
    add_mode(parser)
    argument(parser, "-o --output DIR", "folder for the files", required=True)
    argument(parser, "--model DIR", "checkpoint folder whose template makes the tokens")
    add_chat_template(parser)
    argument(
        parser,
        "--max-length N",
        "maximum number of tokens; a longer conversation ends with the last complete turn that "
        "fits (default: no limit)",
        default=0,
    )
    add_json_option(parser)


def _from_runs(args: argparse.Namespace) -> int:
    """Make training data from good episodes of runs (rejection sampling). A turn is marked as an error and not trained
    if it has no action, or if its action was refused or had no effect. Episodes of evaluation tasks are left out."""
    from evalharness.records.store import read_manifest
    from evalharness.training.datasets.conversation import write_data
    from evalharness.training.datasets.from_runs import (
        Tally,
        find_run_folder,
        parse_keep,
        read_good_conversations,
    )

    keep, tally = parse_keep(args.keep), Tally()
    at_least(1, per_task=args.per_task)
    digests = {
        f"{number}/{path.name}": read_manifest(find_run_folder(path)).digest
        for number, path in enumerate(args.runs, 1)
    }
    exclusion = make_exclusion(args)
    chosen = list(read_good_conversations(args.runs, keep, tally, exclusion, per_task=args.per_task))
    if not chosen:
        reasons = (
            ", ".join(f"{n} {reason}" for reason, n in sorted(tally.not_kept.items())) or "there are none"
        )
        raise UserError(
            f"none of {tally.episodes} episodes was kept ({reasons}); see --keep and --allow-eval-tasks"
        )
    made = {
        "command": "refine from-runs",
        "keep": args.keep,
        "per_task": args.per_task,
        "evaluated_tasks": args.allow_eval_tasks,
        "excluded": exclusion.to_json(),
        "runs": digests,
        "tally": tally.to_json(),
    }
    manifest = write_data(args.output, chosen, made)
    left_out = [f"  {count:,} left out: {reason}" for reason, count in sorted(tally.not_kept.items())]
    return show_data_set(args, [f"{tally.kept:,} of {tally.episodes:,} episodes kept", *left_out], manifest)


def _mix(args: argparse.Namespace) -> int:
    """Join data sets by ratio: `mix grounded.jsonl:0.8 general.json:0.2 -n 10000 -o FILE`. Conversations are drawn
    without replacement and shuffled. Conversations of evaluation tasks are left out."""
    from evalharness.training.datasets.conversation import write_data
    from evalharness.training.datasets.mix import mix, parse_share

    at_least(1, n=args.conversations)
    if args.all and args.conversations is not None:
        raise UserError("--all takes every conversation: leave -n out")
    parts, exclusion = [parse_share(text) for text in args.parts], make_exclusion(args)
    conversations, made, reports = mix(parts, args.seed, args.conversations, exclusion, whole=args.all)
    manifest = write_data(args.output, conversations, made)
    for path, report in reports.items():
        print_unfit(path, report)
    _say_excluded(exclusion)
    drawn = (f"{part['file']}: {part['drawn']:,} of {part['of']:,}" for part in made["parts"])
    return show_data_set(args, drawn, manifest)


def _say_excluded(exclusion: Exclusion) -> None:
    for line in exclusion.lines():
        note(line)


def _read(args: argparse.Namespace) -> int:
    """Convert training data of other projects (conversations, prompts with answers, trajectories) to the format of
    evalharness. Conversations that cannot be converted and conversations of evaluation tasks are left out and counted.
    """
    from evalharness.training.datasets.conversation import write_data
    from evalharness.training.datasets.layouts import ReadReport, hash_files, read_any

    report = ReadReport()
    exclusion = make_exclusion(args)
    read = read_any(args.file, report, args.source)
    conversations = [conversation for conversation in read if exclusion.check(conversation) is None]
    if exclusion.refused and not conversations:
        raise UserError(
            f"{args.file}: {'; '.join(exclusion.lines())}; nothing is left (see --allow-eval-tasks)"
        )
    if not conversations:
        fields = ", ".join(
            printable(name, single_line=True)[:40] for name, _ in report.fields.most_common(20)
        )
        raise UserError(
            f"{args.file} has no conversation that can be trained on. Its fields: {fields or 'none'}. "
            + "; ".join(report.all_lines())
        )
    made = {
        "command": "refine read",
        "file": args.file.name,
        "file_sha256": hash_files(args.file),
        "left_out": dict(sorted(report.reasons.items())),
        "not_read": dict(sorted(report.unread.items())),
        "not_read_of_messages": dict(sorted(report.unread_of_messages.items())),
        "excluded": exclusion.to_json(),
        "errors_by_mask": report.masked_errors,
        "order": report.order.to_json(),
    }
    manifest = write_data(args.output, conversations, made)
    print_unfit(args.file, report)
    _say_excluded(exclusion)
    return show_data_set(args, [], manifest)


def _export(args: argparse.Namespace) -> int:
    from evalharness.training.datasets.conversation import BrokenLine
    from evalharness.training.datasets.export import export

    at_least(0, max_length=args.max_length)
    broken: dict[Path, list[BrokenLine]] = {}
    result = export(
        args.files, args.format, args.mode, args.output,
        model=args.model, template=args.chat_template, max_length=args.max_length, broken=broken,
        on_line=note,
    )  # fmt: skip
    out = results_console(args)
    for path, lines in broken.items():
        print_broken_lines(path, lines)
    print_on(
        out,
        f"{result.records:,} records of {result.conversations:,} conversations, {result.trained_turns:,} trained turns",
    )
    for reason, count in sorted(result.left_out.items()):
        print_on(out, f"  {count:,} left out: {reason}")
    if (tokens := result.tokens) is not None:
        print_on(
            out,
            f"{tokens.tokens:,} tokens, {tokens.trained_tokens:,} of them trained; {tokens.ended_turns:,} trained "
            f"turns end with their end-of-turn token; {tokens.cut_turns:,} turns cut off by --max-length",
        )
        for reason, count in sorted(tokens.refused.items()):
            print_on(out, f"  {count:,} left out: {reason}")
        for line in tokens.lines():
            print_on(out, line)
    print_on(out, f"wrote {', '.join(str(path) for path in result.files)}")
    write_json(args.json, result.to_json())
    return 0
