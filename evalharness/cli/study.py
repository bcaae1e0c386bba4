"""Play a study of training: for every combination of the file's axes make the data, tune a model, run it; then show the
exhibit. The same command continues, tries what failed again, and takes new values in. Without FILE: the studies that
come along. docs/training-studies.md
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from evalharness.base.errors import UserError
from evalharness.base.text import duration, printable
from evalharness.cli import make_parser
from evalharness.cli.common import add_json_option, data_folder
from evalharness.cli.output import make_console, note, require_writable, results_console, say, write_json
from evalharness.cli.parser import argument

if TYPE_CHECKING:
    from rich.console import Console

    from evalharness.training.study.jobs import StudyProgress
    from evalharness.training.study.plan import Plan
    from evalharness.training.study.probes import Probes

HELP = "data, trainings and runs over axes, as one study"


def add_options(parser: argparse.ArgumentParser) -> None:
    argument(parser, "file FILE", "YAML, or the name of one that comes along: table2-small", nargs="?")
    argument(parser, "-o --output DIR", "folder (default: results/NAME)")
    argument(
        parser,
        "--gpus GPUS",
        "a job at a time on each: --gpus 0 1 2 3; several for one job are joined: --gpus 0,1,2,3 4,5,6,7 (default: "
        "one job after the other)",
        nargs="+",
    )
    argument(parser, "--dry-run", "show the jobs, their time and cost; make, train and play nothing")
    argument(parser, "--gpu-price X", "of an hour of one slot of --gpus, for the cost that is shown")
    argument(parser, "--print", "print the file, to write your own from it")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from evalharness.runs.study import TRAININGS
    from evalharness.training.study.file import find_study, read_study_file, shipped
    from evalharness.training.study.jobs import read_progress
    from evalharness.training.study.plan import make_plan

    out = results_console(args)
    if args.file is None:
        say("\n".join(shipped()), stderr=False)
        return 0
    path = find_study(args.file)
    if args.print:
        say(path.read_text(encoding="utf-8").rstrip(), stderr=False)
        return 0
    require_writable("--json", args.json)
    study = read_study_file(path, known_options())
    folder = args.output or Path("results") / path.stem
    plan = make_plan(study, folder, path.parent)
    parse_all(plan)
    progress = read_progress(plan, folder)
    slots: list[str | None] = list(args.gpus or [None])
    models = study.axes.base_model
    if args.dry_run:
        return forecast(args, out, models[0], progress, len(slots))
    check(models, plan, str(path))
    status = play(args, out, path.read_text(encoding="utf-8"), progress, folder, slots, TRAININGS)
    if progress.count("done", "run") and study.exhibit and args.json != "-":
        show_exhibit(folder)
    return status


def known_options() -> dict[tuple[str, ...], dict[str, str]]:
    """Command -> every name of an option -> its long name, as a study's file has them."""
    from evalharness.cli.completion import walk

    def named(flag: str) -> str:
        return flag.lstrip("-").replace("-", "_")

    return {
        level.path: {
            named(flag): named(max(action.option_strings, key=len)) for flag, action in level.options.items()
        }
        for level in walk(make_parser())
    }


def parse_all(plan: Plan) -> None:
    """Every command is one that its parser takes, before hours of work. Exits as the command itself would."""
    from evalharness.training.study.plan import Kind

    parser = make_parser()
    for kind in get_args(Kind):
        for job in plan.jobs.values():
            if job.kind == kind:
                parser.parse_args(job.words)


def check(models: Sequence[str], plan: Plan, place: str) -> None:
    """What runs and probes will play is there, and one of `models`. Raises UserError, which names `place`, before
    anything is made."""
    from evalharness.cli.options import config_of
    from evalharness.cli.probe import asked_model, chosen_prefixes
    from evalharness.models.serving.checkpoint import check_checkpoint
    from evalharness.runs.evaluation import choose
    from evalharness.training.tune.start import start_of

    missing = []
    for model in models:
        try:
            check_checkpoint(start_of(model, note).base)
        except UserError as error:
            missing.append(f"{place}: base model: {error}")
    if len(missing) == len(models):
        raise UserError(missing[0])
    for line in missing:
        note(f"{line}; its cells will fail")
    parser = make_parser()
    for name in plan.cells[0].runs:
        args = parser.parse_args(plan.jobs[name].words)
        try:
            choose(config_of(args), data_folder(args))
        except UserError as error:
            raise UserError(f"{place}: {name}: {error}") from None
    if (probe := plan.cells[0].probe) is not None:
        args = parser.parse_args(plan.jobs[probe].words)
        try:
            asked_model(args)
            chosen_prefixes(args)
        except UserError as error:
            raise UserError(f"{place}: {probe}: {error}") from None


def play(
    args: argparse.Namespace,
    out: Console,
    file: str,
    progress: StudyProgress,
    folder: Path,
    slots: Sequence[str | None],
    kind: str,
) -> int:
    """Work off what is left; the exit status. `file`: the text that says what the study is."""
    from evalharness.models.event_loop import run_to_end
    from evalharness.training.study.folder import StudyFolder
    from evalharness.training.study.jobs import work
    from evalharness.training.study.probes import print_probes, read_probes
    from evalharness.training.study.show import problems, table_of, to_json, watch_study

    with StudyFolder(folder, kind) as store:
        store.begin(file, progress.plan)
        try:
            with watch_study(progress, len(slots), make_console(stderr=True)):
                run_to_end(work(progress, folder, slots))
        except (KeyboardInterrupt, SystemExit):
            note(f"stopped; what is finished is in {folder}")
            raise
        finally:
            store.note(progress)
    out.print(table_of(progress))
    failed = problems(progress, folder)
    for line in failed:
        note(line)
    probed = read_probes(progress.plan.cells, folder)
    print_probes(out, probed)
    write_json(args.json, {**to_json(progress), **probed.to_json()})
    if progress.count("done", "run") or probed.models:
        out.print(f"study folder: {folder}  (again: evalharness show {folder})", soft_wrap=True)
    if failed:
        note("the same command tries what failed again")
    return 3 if failed else 0


def show_exhibit(folder: Path, json: str | None = None, more: Mapping[str, Any] | None = None) -> None:
    """Of a study's folder: the exhibit that its file names, else table 1. `more` goes into its JSON. Raises UserError
    for a damaged file."""
    from evalharness.cli import paper
    from evalharness.training.study.file import read_study_file
    from evalharness.training.study.folder import FILE

    file = folder / FILE
    name = (read_study_file(file, known_options()).exhibit if file.exists() else None) or "table1"
    args = make_parser().parse_args(["paper", name, str(folder), *(["--json", json] if json else [])])
    paper.run(args, more)


def probes_of(folder: Path) -> Probes | None:
    """What the models of a study do after an error; None where none was asked. Raises UserError for a damaged file."""
    from evalharness.training.study.file import read_study_file
    from evalharness.training.study.folder import FILE
    from evalharness.training.study.plan import PROBES, make_plan
    from evalharness.training.study.probes import read_probes

    if not (folder / PROBES).is_dir():
        return None
    plan = make_plan(read_study_file(folder / FILE, known_options()), folder, folder)
    return read_probes(plan.cells, folder)


def forecast(args: argparse.Namespace, out: Console, model: str, progress: StudyProgress, slots: int) -> int:
    """What is left, how long it takes as far as earlier jobs and runs tell, and what that costs. Tokens of runs are
    those of `model`."""
    from evalharness.training.study.show import PLURALS, seconds_left, table_of, to_json
    from evalharness.training.study.writing import writing_left

    out.print(table_of(progress))
    left_to_play = progress.count("done", "run") < len(progress.plan.runs)
    tokens = _tokens(model, progress) if left_to_play else _NO_TOKENS
    for kind, plural in PLURALS.items():
        jobs = [job for job in progress.plan.jobs.values() if job.kind == kind]
        if not jobs:
            continue
        left = [job for job in jobs if progress.states[job.name].status != "done"]
        each = progress.seconds_of(kind)
        pace = f"about {duration(each)} each" if each else "time not known before the first"
        out.print(f"{plural}: {len(left)} of {len(jobs)} to do; {pace}")
    if not any(state.status != "done" for state in progress.states.values()):
        out.print("nothing is left to do")
    written = writing_left(progress)
    for line in [*([written.line()] if written else []), *tokens["lines"]]:
        out.print(line, soft_wrap=True)
    seconds = seconds_left(progress, slots)
    if seconds:
        out.print(f"in all about {duration(seconds)} with {slots} at a time")
    cost = None
    if (price := getattr(args, "gpu_price", None)) is not None and seconds is not None:
        cost = price * slots * seconds / 3600
        out.print(f"cost: {cost:,.2f} at {price:g} an hour and slot")
    forecast = {
        "seconds": seconds,
        "cost": cost,
        **{k: tokens[k] for k in ("prompt_tokens", "completion_tokens")},
        "synthesis": asdict(written) if written else None,
    }
    write_json(args.json, {**to_json(progress), "forecast": forecast})
    return 0


_NO_TOKENS: Mapping[str, Any] = {"lines": [], "prompt_tokens": None, "completion_tokens": None}


def _tokens(model: str, progress: StudyProgress) -> Mapping[str, Any]:
    """Of all runs that are left, as `run --dry-run` estimates them with the first base model."""
    from evalharness.cli.options import config_of
    from evalharness.runs.dry_run import dry_run

    found = dict(_NO_TOKENS)
    plan, parser = progress.plan, make_parser()
    totals = {"episodes": 0.0, "turns": 0.0, "prompt_tokens": 0.0, "completion_tokens": 0.0}
    for number in range(len(plan.cells[0].runs)):
        names = [cell.runs[number] for cell in plan.cells]
        waiting = [name for name in names if progress.states[name].status != "done"]
        if not waiting:
            continue
        words = list(plan.jobs[waiting[0]].words)
        words[words.index("--model") + 1] = model
        args = parser.parse_args(words)
        try:
            planned = dry_run(config_of(args), data=data_folder(args), on_status=note)
        except UserError as error:
            why = printable(str(error), single_line=True)[:200]
            return found | {"lines": [f"tokens of runs are not known: {why}"]}
        for family in planned.families:
            totals["episodes"] += len(waiting) * family.left
            for key in ("turns", "prompt_tokens", "completion_tokens"):
                totals[key] += len(waiting) * getattr(family, key)
    line = (
        f"runs: {totals['episodes']:,.0f} episodes, at most {totals['turns']:,.0f} turns as far as known, about "
        f"{totals['prompt_tokens'] / 1e6:,.2f} million prompt and {totals['completion_tokens'] / 1e6:,.2f} million "
        "completion tokens"
    )
    return {"lines": [line], **{key: round(totals[key]) for key in ("prompt_tokens", "completion_tokens")}}
