"""Run one training in one folder, continue it after a stop, and write its manifest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from evalharness.base.errors import InfrastructureError, UserError, system_errors
from evalharness.base.locks import hold_lock
from evalharness.base.machine import usable_cores
from evalharness.base.paths import write_whole
from evalharness.base.reading import read_object
from evalharness.base.version import __version__
from evalharness.models.serving.checkpoint import TOKENIZER_FILES
from evalharness.models.serving.demo import DEMO_BASE, demo_path
from evalharness.records.lines import read_lines
from evalharness.runs.find_runs import TRAINING
from evalharness.training.datasets.chat_templates import read_template
from evalharness.training.tune.plan import MANIFEST, ROWS, TrainingPlan
from evalharness.training.tune.process import Event, follow
from evalharness.training.tune.progress import TuningProgress
from evalharness.training.tune.trainer.events import NO_MEMORY, NOT_FINITE
from evalharness.training.tune.trainer.saving import RECORD

LOG, TALK, JOB = "log.jsonl", "tune.log", "job.json"
TRAINER = Path(__file__).parent / "trainer" / "train.py"
_ENDS = {NOT_FINITE: "not finite", NO_MEMORY: "no memory"}
"""Exit status of the training process -> status in the manifest."""


def find_latest_checkpoint(folder: Path) -> Path | None:
    """Return the last complete checkpoint. Remove incomplete checkpoints, which a kill can leave behind."""
    complete = []
    for path in folder.glob("checkpoint-*"):
        number = path.name.removeprefix("checkpoint-")
        if not number.isdigit():
            continue
        if (path / RECORD).is_file():
            complete.append((int(number), path))
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(complete)[1] if complete else None


def make_job(planned: TrainingPlan, resume: Path | None) -> dict[str, Any]:
    """Return the job that `trainer/train.py` reads."""
    adapter = planned.start.adapter
    return {
        **planned.settings.to_json(),
        "model": str(planned.base.path.resolve()),
        "base_name": DEMO_BASE if planned.base.path.resolve() == demo_path().resolve() else None,
        "adapter": None if adapter is None else str(adapter.path.resolve()),
        "data": str(planned.rows.resolve()),
        "out": str(planned.folder.resolve()),
        "dtype": planned.dtype,
        "stored": planned.base.dtype,
        "save_every": planned.save_every,
        "keep": planned.keep,
        "threads": usable_cores(),
        "cpu": planned.cpu,
        "resume": None if resume is None else str(resume.resolve()),
        "tokenizer_files": list(TOKENIZER_FILES),
        "chat_template": planned.template and read_template(planned.template, planned.base.path),
        "end_ids": sorted(planned.made.counts.end_ids),
    }


def make_command(planned: TrainingPlan) -> list[str]:
    return [str(planned.install.python), "-I", str(TRAINER), str(planned.folder.resolve() / JOB)]


@contextmanager
def make_folder(folder: Path) -> Iterator[None]:
    """Create the folder; remove it again if the training does not start. Raises UserError if it cannot be created."""
    was_there = folder.exists()
    with system_errors(f"cannot write to {folder}", "; choose another with -o DIR"):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except UserError:
        left = {path.name for path in folder.iterdir()}
        if not was_there and left <= {".lock", ROWS}:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def lock_folder(folder: Path) -> IO[bytes]:
    """Lock the folder until the returned file is closed. Raises UserError if another process trains in it."""
    return hold_lock(folder / ".lock", f"another process is training in {folder}")


def train(
    planned: TrainingPlan,
    progress: TuningProgress,
    *,
    command: Sequence[str] = (),
    on_interrupt: Callable[[], None] = lambda: None,
) -> str:
    """Start or continue the training. Return "done", or "stopped" after Ctrl-C (then there is a checkpoint).

    Raises UserError if the loss became NaN or infinite, or if memory was too small. Raises InfrastructureError if the
    training failed for another reason.
    """
    resume = find_latest_checkpoint(planned.folder)
    _continue_log(planned.folder, 0 if resume is None else int(resume.name.rpartition("-")[2]), progress)
    progress.steps = planned.steps
    write_whole(planned.folder / JOB, json.dumps(make_job(planned, resume), indent=2) + "\n")
    _write_manifest(planned, progress, "started", command)
    last: list[Event] = []

    def take(event: Event) -> None:
        progress.take(event)
        last[:] = [event]
        if event["event"] == "step":
            with (planned.folder / LOG).open("a", encoding="ascii") as file:
                file.write(json.dumps({k: v for k, v in event.items() if k != "event"}) + "\n")

    status = follow(make_command(planned), planned.folder / TALK, take, on_interrupt)
    ended = last[0]["event"] if last else "nothing"
    if status or ended not in ("done", "stopped"):
        _write_manifest(planned, progress, _ENDS.get(status, "failed"), command)
        raise _failure(planned, status, progress)
    _write_manifest(planned, progress, ended, command)
    if ended == "done":
        planned.rows.unlink(missing_ok=True)
    return ended


def _failure(planned: TrainingPlan, status: int, progress: TuningProgress) -> UserError | InfrastructureError:
    kept = find_latest_checkpoint(planned.folder)
    where = "there is no checkpoint yet" if kept is None else f"the last checkpoint is {kept}"
    if status == NOT_FINITE:
        return UserError(
            f"after step {progress.step} the loss was NaN or infinite, and the training stopped; {where}. "
            "Try a lower --lr in another folder (-o DIR)"
        )
    if status == NO_MEMORY:
        return UserError(
            f"there was too little memory ({where}): try a smaller --micro-batch or --max-length, or "
            "--gradient-checkpointing"
        )
    killed = " (killed, often for lack of memory)" if status in (-9, 137) else ""
    talk = planned.folder / TALK
    reason = _last_error(talk)
    return InfrastructureError(
        f"the training ended with status {status}{killed}{': ' + reason if reason else ''}; {where}; its output is in "
        f"{talk}. Run the same command again to continue"
    )


def _last_error(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-60:] if path.exists() else []
    return next((line.strip()[:300] for line in reversed(lines) if "Error" in line), "")


def _continue_log(folder: Path, step: int, progress: TuningProgress) -> None:
    """Read the log up to `step`, the last checkpoint, into `progress`. Remove later steps from the log, because they
    are trained again. Raises UserError if the log is damaged."""
    path = folder / LOG

    def take(raw: bytes) -> bytes:
        event = read_object(raw)
        if event["step"] > step:
            return b""
        progress.take({**event, "event": "step"})
        return raw.rstrip(b"\n") + b"\n"

    log = b"".join(read_lines(path, "its step is not counted", take))
    progress.recent = []
    if path.exists():
        write_whole(path, log)


def _write_manifest(
    planned: TrainingPlan, progress: TuningProgress, status: str, command: Sequence[str]
) -> None:
    manifest = {
        "kind": TRAINING,
        "schema": 1,
        "status": status,
        "evalharness": __version__,
        "command": list(command),
        "identity": planned.identity,
        "base": {
            "path": str(planned.base.path.resolve()),
            "architecture": planned.base.architecture,
            "sha256": planned.base.identity,
        },
        "chain": planned.start.chain(),
        "data": {"files": planned.data, **planned.made.to_json()},
        "versions": dict(planned.install.versions),
        "seed": planned.settings.seed,
        "machine": progress.facts,
        "estimate": planned.estimate.to_json(),
        "training": {
            "steps": progress.step,
            "of_steps": progress.steps,
            "first_loss": progress.first_loss,
            "last_loss": progress.loss,
            "tokens": progress.tokens,
            "trained_tokens": progress.trained_tokens,
            "tokens_per_s": round(progress.tokens / progress.seconds, 1) if progress.seconds else None,
            "hours": round(progress.seconds / 3600, 3),
        },
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_whole(planned.folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
