"""The checkpoints of a training run, as the runs of one study."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from evalharness.base.errors import UserError, system_errors
from evalharness.config import RunConfig, SelectionConfig
from evalharness.models.serving.checkpoint import CheckpointError, check_checkpoint
from evalharness.models.serving.lora import check_adapter, is_adapter
from evalharness.runs.study_file import SELECT

_NAME = re.compile(r"(checkpoint|step|epoch|episode)[-_](\d{1,18})")
_LOOK_EVERY = 20.0


@dataclass(frozen=True)
class Checkpoint:
    name: str
    axis: str
    """What `number` counts: `step`, `epoch` or `episode`."""
    number: int
    path: Path
    is_adapter: bool


@dataclass(frozen=True)
class FoundCheckpoints:
    checkpoints: tuple[Checkpoint, ...]
    """The complete checkpoints, sorted by their number."""
    incomplete: Mapping[str, str]
    """Name of an incomplete checkpoint -> what is missing. It is still being written, or broken."""


def find_checkpoints(folder: Path, only: str | None = None, *, none_yet: bool = False) -> FoundCheckpoints:
    """Find the checkpoints in `folder`: `checkpoint-N`, `step_N` or `epoch_N`. `only`: a pattern for their names.
    Raises UserError if two checkpoints have the same number, or if there is no checkpoint and `none_yet` is false."""
    with system_errors(f"{folder}", "; give the folder that holds the checkpoints"):
        names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    listed = [name for name in names if _NAME.fullmatch(name) and (only is None or fnmatchcase(name, only))]
    if not listed and none_yet:
        return FoundCheckpoints((), {})
    if not listed:
        which = f" that match {only!r}" if only else ""
        raise UserError(f"{folder} holds no checkpoint-N, step_N or epoch_N folders{which}")
    axes = {axis_and_number(name)[0] for name in listed}
    numbers = [axis_and_number(name)[1] for name in listed]
    if len(axes) > 1 or len(set(numbers)) < len(numbers):
        raise UserError(
            f"{folder} holds checkpoints of several kinds ({listed[0]}, {listed[-1]}, ...); choose one with "
            f"--only '{listed[0].rstrip('0123456789')}*'"
        )
    whole, incomplete = [], {}
    for name in sorted(listed, key=lambda name: axis_and_number(name)[1]):
        path = folder / name
        adapter = is_adapter(path)
        try:
            check_adapter(path) if adapter else check_checkpoint(path)
        except CheckpointError as error:
            incomplete[name] = str(error)
        else:
            whole.append(Checkpoint(name, *axis_and_number(name), path, adapter))
    return FoundCheckpoints(tuple(whole), incomplete)


def axis_and_number(name: str) -> tuple[str, int]:
    """Return (axis, number) of a checkpoint's name, for example (step, 500) for `checkpoint-500`."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise UserError(f"{name!r} is not checkpoint-N, step_N or epoch_N")
    return "step" if match[1] == "checkpoint" else match[1], int(match[2])


def runs_of(
    checkpoints: Sequence[Checkpoint],
    config: RunConfig,
    *,
    base: str | None,
    merge: bool,
    select_seed: int | None,
) -> dict[str, RunConfig]:
    """Map each checkpoint's name to its run. `config.policy.model` is the folder of the checkpoints; `base` is the base
    model of adapters. The run for `--select-on` follows the checkpoint's main run, so the weights are loaded once."""
    runs = {}
    for checkpoint in checkpoints:
        own: dict[str, object] = {
            "model": str(checkpoint.path),
            "model_name": f"{config.policy.display_name}/{checkpoint.name}",
            "label": {**config.execution.label, checkpoint.axis: str(checkpoint.number)},
        }
        if checkpoint.is_adapter:
            own["lora_serve"] = not merge
            if base is not None:
                own |= {"model": base, "lora": checkpoint.path}
        run = config.with_options(**own)
        runs[checkpoint.name] = run
        if select_seed is not None:
            chosen_on = {"suite": "open", "suite_seed": select_seed}
            runs[checkpoint.name + SELECT] = run.with_options(**chosen_on)
    return runs


def select_seed(text: str | None, reported: SelectionConfig) -> int | None:
    """Return SEED of `--select-on open:SEED`. Raises UserError if this is the suite whose scores are reported."""
    if text is None:
        return None
    suite, _, seed = text.partition(":")
    if suite != "open" or not (seed or "0").isdecimal():
        raise UserError(f"--select-on {text}: give open:SEED, a seed of the open suite")
    number = int(seed or 0)
    if (reported.suite, reported.suite_seed) == ("open", number):
        raise UserError(
            f"--select-on {text} is the suite that is reported; choose on another seed (evalharness data suite build "
            "--suite-seed N), or report another suite"
        )
    return number


def wait_for_new(
    look: Callable[[], set[str]],
    known: set[str],
    minutes: float,
    *,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until `look` returns a name that is not in `known`. Return False if that takes longer than `minutes`."""
    until = clock() + 60 * minutes
    while not look() - known:
        left = until - clock()
        if left <= 0:
            return False
        pause(min(_LOOK_EVERY, left))
    return True
