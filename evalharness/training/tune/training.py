"""One training in one folder: run, continued where it stopped, written down."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.base.locks import locked
from evalharness.base.machine import usable_cores
from evalharness.base.paths import write_whole
from evalharness.base.version import __version__
from evalharness.base.yaml_lines import read_yaml, syntax_problem
from evalharness.models.serving.checkpoint import TOKENIZER_FILES
from evalharness.runs.folders import TRAINING
from evalharness.training.tune.estimate import stored_dtype
from evalharness.training.tune.plan import MANIFEST, Plan
from evalharness.training.tune.process import Event, follow
from evalharness.training.tune.progress import TuningProgress

LOG, TALK, JOB = "log.jsonl", "tune.log", "job.json"
RECORD = "evalharness_tune.json"
"""In a checkpoint that is whole: as in `trainer/saving.py`."""
TRAINER = Path(__file__).parent / "trainer" / "train.py"
_ENDS = {7: "not finite", 8: "no memory", 9: "refused"}
"""Status in the manifest, by the exit status (`trainer/events.py`)."""


def latest_checkpoint(folder: Path) -> Path | None:
    """The last whole checkpoint. Those that a kill left half written are removed."""
    found = []
    for path in folder.glob("checkpoint-*"):
        number = path.name.removeprefix("checkpoint-")
        if not number.isdigit():
            continue
        if (path / RECORD).is_file():
            found.append((int(number), path))
        else:
            shutil.rmtree(path, ignore_errors=True)
    return max(found)[1] if found else None


def job_of(planned: Plan, resume: Path | None, *, listen: bool = True) -> dict[str, Any]:
    """What `trainer/train.py` reads."""
    return {
        **planned.settings.to_json(),
        "model": str(planned.base.path.resolve()),
        "data": str(planned.rows.resolve()),
        "out": str(planned.folder.resolve()),
        "dtype": planned.dtype,
        "stored": stored_dtype(planned.base),
        "save_every": planned.save_every,
        "keep": planned.keep,
        "threads": usable_cores(),
        "cpu": planned.cpu,
        "resume": None if resume is None else str(resume.resolve()),
        "listen": listen,
        "launched": planned.accelerate_config is not None,
        "tokenizer_files": list(TOKENIZER_FILES),
        "chat_template": None if planned.template is None else planned.template.read_text(encoding="utf-8"),
        "end_ids": sorted(planned.made.counts.end_ids),
    }


def command_of(planned: Plan) -> list[str]:
    job = str(planned.folder.resolve() / JOB)
    python = [str(planned.install.python), "-I"]
    if planned.accelerate_config is None:
        return [*python, str(TRAINER), job]
    config = str(planned.accelerate_config.resolve())
    if (processes := _cpu_processes(planned.accelerate_config)) > 1:
        # Of several CPU processes accelerate starts one alone where there is no MPI; torch starts them over gloo.
        launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        return [*python, "-m", *launcher, str(TRAINER), job]
    return [*python, "-m", "accelerate.commands.launch", "--config_file", config, str(TRAINER), job]


def _cpu_processes(config: Path) -> int:
    """How many processes a file of `accelerate config` wants on the CPUs of this machine; 1 where it is another kind.

    Raises UserError.
    """
    try:
        found = read_yaml(config)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"--accelerate-config {config} cannot be read: {syntax_problem(error)}") from None
    if not isinstance(found, dict):
        raise UserError(f"--accelerate-config {config} is no file of `accelerate config`")
    try:
        machines, processes = (int(found.get(key) or 1) for key in ("num_machines", "num_processes"))
    except (TypeError, ValueError):
        raise UserError(
            f"--accelerate-config {config}: num_machines and num_processes are whole numbers"
        ) from None
    alone = found.get("distributed_type") == "MULTI_CPU" and machines == 1
    return processes if alone and not found.get("mpirun_config") else 1


def prepare(planned: Plan) -> list[str]:
    """Write what other machines need to start the training by themselves; the command that starts it."""
    resume = latest_checkpoint(planned.folder)
    write_whole(planned.folder / JOB, json.dumps(job_of(planned, resume, listen=False), indent=2) + "\n")
    _write_manifest(planned, TuningProgress(steps=planned.steps), "prepared", [])
    return command_of(planned)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Raises UserError where another process trains in this folder."""
    with locked(folder / ".lock") as alone:
        if not alone:
            raise UserError(f"another process is training in {folder}")
        yield


def train(
    planned: Plan,
    progress: TuningProgress,
    *,
    command: Sequence[str] = (),
    on_event: Callable[[Event], None] = lambda event: None,
    on_interrupt: Callable[[], None] = lambda: None,
) -> str:
    """Train, or go on; "done" or "stopped" (by Ctrl-C, with a checkpoint).

    Raises UserError where the loss was no number any more or memory did not suffice, InfrastructureError where the
    training died of something else.
    """
    resume = latest_checkpoint(planned.folder)
    _continue_log(planned.folder, 0 if resume is None else int(resume.name.rpartition("-")[2]), progress)
    progress.steps = planned.steps
    write_whole(planned.folder / JOB, json.dumps(job_of(planned, resume), indent=2) + "\n")
    _write_manifest(planned, progress, "started", command)
    last: list[Event] = []

    def take(event: Event) -> None:
        progress.take(event)
        last[:] = [event]
        if event["event"] == "step":
            with (planned.folder / LOG).open("a", encoding="ascii") as file:
                file.write(json.dumps({k: v for k, v in event.items() if k != "event"}) + "\n")
        on_event(event)

    status = follow(command_of(planned), planned.folder / TALK, take, on_interrupt)
    ended = last[0]["event"] if last else "nothing"
    if status or ended not in ("done", "stopped"):
        _write_manifest(planned, progress, _ENDS.get(status, "failed"), command)
        raise _failure(planned, status, progress)
    _write_manifest(planned, progress, ended, command)
    if ended == "done":
        planned.rows.unlink(missing_ok=True)
    return ended


def _failure(planned: Plan, status: int, progress: TuningProgress) -> UserError | InfrastructureError:
    kept = latest_checkpoint(planned.folder)
    where = "no checkpoint was made before" if kept is None else f"the last checkpoint is {kept}"
    if status == 7:
        return UserError(
            f"after step {progress.step} the loss was no number any more, and the training was stopped; {where}. "
            "A lower --lr (and -o another folder) is what helps most"
        )
    if status == 9:
        return UserError(f"{progress.problem}; choose another --batch or --micro-batch")
    if status == 8:
        return UserError(
            f"memory did not suffice ({where}): a smaller --micro-batch or --max-length, or --gradient-checkpointing"
        )
    killed = " (killed; often because memory did not suffice)" if status in (-9, 137) else ""
    talk = planned.folder / TALK
    said = _last_error(talk)
    return InfrastructureError(
        f"the training ended with status {status}{killed}{': ' + said if said else ''}; {where}, its output is in "
        f"{talk}. The same command goes on"
    )


def _last_error(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[-60:] if path.exists() else []
    return next((line.strip()[:300] for line in reversed(lines) if "Error" in line), "")


def _continue_log(folder: Path, step: int, progress: TuningProgress) -> None:
    """Take the log up to `step`; what was trained after the last checkpoint is trained again."""
    path = folder / LOG
    kept: list[str] = []
    for line in path.read_text(encoding="ascii").splitlines() if path.exists() else []:
        try:
            event = json.loads(line)
        except ValueError:
            continue  # torn by a kill
        if event["step"] <= step:
            kept.append(line)
            progress.take({"event": "step", **event})
    progress.recent = []
    if path.exists() or kept:
        write_whole(path, "".join(line + "\n" for line in kept))


def _write_manifest(planned: Plan, progress: TuningProgress, status: str, command: Sequence[str]) -> None:
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
