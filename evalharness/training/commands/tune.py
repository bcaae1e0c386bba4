"""Train a base model on conversations (`evalharness refine`). Turns with
"loss": false stay in the context and are not trained. Run the same command
again to continue from the last checkpoint.

  evalharness tune install        once: install trl, peft and datasets
  evalharness tune --model demo-base --data data.jsonl -o tuned/
  evalharness run --model tuned/ --suite open
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError, at_least
from evalharness.base.text import duration
from evalharness.cli.common import add_json_option
from evalharness.cli.output import note, results_console, say, write_json
from evalharness.cli.parser import CommandParser, argument, number, subcommand
from evalharness.training.commands.refine_common import (
    add_chat_template,
    add_mode,
    print_broken_lines,
    print_on,
)

if TYPE_CHECKING:
    from evalharness.training.tune.data import DataCounts
    from evalharness.training.tune.plan import TrainingPlan
    from evalharness.training.tune.progress import TuningProgress

HELP = "train a model on a data set"
_METHODS = ("lora", "full")


def add_options(parser: CommandParser) -> None:
    _add_what(parser)
    _add_how(parser)
    _add_where(parser)
    add_json_option(parser)
    actions = parser.add_subparsers(title="commands", metavar="COMMAND", required=False)
    install = subcommand(actions, "install", _install, "make the training environment")
    argument(install, "--force", "install again")
    subcommand(actions, "uninstall", _uninstall, "remove the training environment")


def _add_what(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what")
    argument(
        what,
        "--model BASE",
        "checkpoint folder, hub id in the cache, or demo-base; with a LoRA adapter's folder, or "
        "demo, its training continues",
    )
    argument(what, "--data FILE", "data sets (evalharness refine)", nargs="+")
    argument(what, "-o --output DIR", "folder of the training")
    add_mode(what)
    add_chat_template(what)
    argument(what, "--max-length N", "maximum number of tokens of a conversation (default: 4096)")
    argument(
        what,
        "--too-long {refuse,drop,drop-any}",
        "refuse longer conversations, leave out at most a tenth of each family (drop), or any "
        "number (drop-any); they are never cut (default: refuse)",
    )


def _add_how(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("how")
    argument(
        how,
        "--preset {small,paper}",
        "small: LoRA for a small machine; paper: all weights, lr 5e-6, cosine without warm-up, batch 64, 10 epochs, "
        "8192 tokens, one conversation at a time, gradient checkpointing",
        default="small",
    )
    argument(how, "--method", "train an adapter or all weights (default: lora)", choices=_METHODS)
    argument(how, "--lora-rank R", "rank of the adapter in every linear layer (default: 16)")
    argument(how, "--lora-alpha A", "scale of the adapter (default: twice the rank)")
    argument(how, "--lora-dropout P", "dropout of the adapter (default: 0)")
    argument(how, "--lr X", "learning rate (default: 5e-4; all weights: 2e-5)")
    argument(how, "--schedule {cosine,linear,constant}", "schedule of the learning rate (default: cosine)")
    argument(how, "--warmup SHARE", "share of the steps with warm-up (default: 0.03)")
    argument(how, "--weight-decay X", "weight decay of the optimizer (default: 0)")
    argument(how, "--max-grad-norm X", "clip gradients to this norm (default: 1)")
    argument(how, "--epochs N", "passes over the data (default: 3)", type=number)
    argument(how, "--max-steps N", "end after N steps instead")
    argument(how, "--batch N", "conversations in a step (default: 8)")
    argument(how, "--micro-batch N", "conversations at a time, padded to the longest (default: 1)")
    argument(how, "--seed N", "seed of the order and of the first adapter weights (default: 0)")
    how.add_argument(
        "--gradient-checkpointing", action=argparse.BooleanOptionalAction,
        help="recompute activations: less memory, a third slower (default: only with --preset paper)",
    )  # fmt: skip
    argument(
        how,
        "--dtype {bfloat16,float32}",
        "number type of the computation (default: the faster one on this machine)",
    )
    argument(how, "--cpu", "do not use a GPU")


def _add_where(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("checkpoints and memory")
    argument(
        where,
        "--save-every N",
        "save a checkpoint every N steps (default: ten in all; whole models: one in each epoch)",
    )
    argument(where, "--keep N", "keep only the last N checkpoints (default: all)", default=0)
    argument(
        where,
        "--dry-run",
        "show tokens and steps of --data, and the memory; train nothing. Without "
        "--data, compute for conversations of --max-length",
    )
    argument(
        where,
        "--gpu-memory GB",
        "memory of the GPU for --dry-run (default: 80 with a GPU, else this machine's memory)",
    )


def _install(args: argparse.Namespace) -> int:
    """Install trl, peft and datasets (0.4 GB) into an environment of their own ($EVALHARNESS_HOME/tune if that is set)
    on top of the model server's environment."""
    from evalharness.cli.install_progress import install_progress
    from evalharness.training.tune.install import install_tune

    with install_progress(sys.stdout) as progress:
        install = install_tune(force=args.force, on_line=progress)
    what = ", ".join(f"{name} {version}" for name, version in install.versions.items())
    if install.fresh:
        say(f"installed in {install.seconds:.0f} s: {install.environment} ({what})", stderr=False)
    else:
        say(f"already there: {install.environment} ({what}; --force installs it again)", stderr=False)
    return 0


def _uninstall(args: argparse.Namespace) -> int:
    """Remove the training environment; the model server stays."""
    from evalharness.training.tune.install import tune_folder, uninstall_tune

    removed = uninstall_tune()
    say(f"removed {tune_folder()}" if removed else "there is no training environment", stderr=False)
    return 0


def _settings(args: argparse.Namespace) -> Any:
    from dataclasses import fields

    from evalharness.training.tune.settings import Settings, make_settings

    return make_settings(args.preset, {field.name: getattr(args, field.name) for field in fields(Settings)})


def run(args: argparse.Namespace) -> int:
    from evalharness.training.tune.install import require_tune_install
    from evalharness.training.tune.plan import plan, read_manifest
    from evalharness.training.tune.progress import TuningProgress, watch_training
    from evalharness.training.tune.settings import choose_base_template
    from evalharness.training.tune.start import find_start
    from evalharness.training.tune.training import lock_folder, make_folder, train

    if args.dry_run:
        return _dry_run(args)
    missing = [
        name
        for name, value in (("--model", args.model), ("--data", args.data), ("-o", args.output))
        if value is None
    ]
    if missing:
        raise UserError(f"evalharness tune needs {', '.join(missing)} (see: evalharness tune --help)")
    at_least(0, keep=args.keep)
    at_least(1, save_every=args.save_every)
    start = find_start(args.model, note)
    settings = start.settings(vars(args), choose_base_template(_settings(args), start.base, args.preset))
    install = require_tune_install()
    out = results_console(args)
    with make_folder(args.output), lock_folder(args.output):
        planned = plan(
            start, args.data, args.output, settings, install, save_every=args.save_every, keep=args.keep,
            dtype=args.dtype, cpu=args.cpu, on_line=note,
        )  # fmt: skip
        if planned is None:
            print_on(out, f"{args.output}: the training is already complete")
            write_json(args.json, read_manifest(args.output))
            return 0
        _say_plan(out, planned)
        progress = TuningProgress()
        with watch_training(progress, out):
            ended = train(
                planned, progress, command=sys.argv[1:],
                on_interrupt=lambda: note(
                    "stopping after this step, with a checkpoint (Ctrl-C again: stop at once)"
                ),
            )  # fmt: skip
    _say_end(out, planned, progress, ended)
    write_json(args.json, read_manifest(args.output))
    return 0 if ended == "done" else 130


def _dry_run(args: argparse.Namespace) -> int:
    from evalharness.training.tune.dry_run import dry_run
    from evalharness.training.tune.install import require_tune_install
    from evalharness.training.tune.settings import choose_base_template
    from evalharness.training.tune.start import find_start

    if args.model is None:
        raise UserError("evalharness tune --dry-run needs --model")
    if args.gpu_memory is not None and not 0 < args.gpu_memory < 1e6:
        raise UserError("--gpu-memory must be above 0 (in GB)")
    start, settings = find_start(args.model, note), _settings(args)
    if args.data:  # only tokenizing needs a chat template
        settings = choose_base_template(settings, start.base, args.preset)
    report = dry_run(
        start.base, args.data or [], start.settings(vars(args), settings),
        gpu_memory=None if args.gpu_memory is None else int(args.gpu_memory * 1e9), dtype=args.dtype, cpu=args.cpu,
        server=require_tune_install().server if args.data else None,
        on_line=note,
    )  # fmt: skip
    use = report.use
    out = results_console(args)
    if report.made:
        print_on(out, f"{_size(report.made)}; {report.steps:,} steps of {use.settings.batch}")
    print_on(
        out,
        f"{report.shape.parameters / 1e6:,.0f} million parameters, {use.micro_batch} x {use.tokens:,} tokens at a time",
    )
    for name, size in report.memory.to_json().items():
        print_on(out, f"  {name:<12}{size / 1e9:8.2f} GB")
    print_on(out, f"  {'of':<12}{report.limit / 1e9:8.2f} GB")
    write_json(args.json, report.to_json())
    report.require_fit()
    return 0


def _size(made: DataCounts) -> str:
    return (
        f"{made.rows:,} conversations, {made.tokens:,} tokens, {made.trained_tokens:,} of them trained "
        f"({made.trained_turns:,} turns); the longest has {made.longest:,}"
    )


def _say_plan(out: Any, planned: TrainingPlan) -> None:
    made, estimate, settings = planned.made, planned.estimate, planned.settings
    for path, broken in made.broken.items():
        print_broken_lines(path, broken)
    what = f"LoRA of rank {settings.lora_rank}" if settings.method == "lora" else "all weights"
    lines = [
        _size(made),
        *(f"  {count:,} left out: {reason}" for reason, count in sorted(made.left_out.items())),
        *(f"  {line}" for line in (*made.list_losses(), *made.order.lines(), *made.counts.lines())),
        f"{what}: {estimate.trained_parameters / 1e6:.1f} of {estimate.parameters / 1e6:.0f} million parameters, "
        f"{planned.steps:,} steps of {settings.batch}, {planned.dtype}",
        f"chat template: {settings.chat_template or 'of the base model'}",
        f"about {estimate.memory.total / 1e9:.1f} GB of memory (--dry-run shows its parts), "
        f"{estimate.disk_bytes / 1e9:.1f} GB on the disk",
    ]
    for line in lines:
        print_on(out, line)
    if planned.warning:
        note(f"{planned.warning}")


def _say_end(out: Any, planned: TrainingPlan, progress: TuningProgress, ended: str) -> None:
    speed = f", {progress.tokens / progress.seconds:,.0f} tokens/s" if progress.seconds else ""
    lines = [
        f"{progress.step:,} of {progress.steps:,} steps, {progress.tokens:,} tokens in "
        f"{duration(progress.seconds)}{speed}",
    ]
    if progress.loss is not None:
        lines.append(f"loss {progress.first_loss:.3f} -> {progress.loss:.3f}")
    folder = planned.folder
    if ended == "done":
        lines.append(
            f"play it with: evalharness run --model {folder}   (or: evalharness checkpoints {folder})"
        )
    else:
        lines.append("stopped; run the same command again to continue")
    for line in lines:
        print_on(out, line)
