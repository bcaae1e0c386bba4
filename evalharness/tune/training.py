"""One training in one folder: checked and estimated before it starts, continued where it stopped, written down."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalharness._version import __version__
from evalharness.errors import InfrastructureError, UserError
from evalharness.paths import write_whole
from evalharness.server.checkpoint import TOKENIZER_FILES, CheckpointInfo, check_checkpoint
from evalharness.server.find import nvidia_gpu
from evalharness.tune.data import Made, data_sha256, make_rows
from evalharness.tune.estimate import Estimate, estimate, require_room, stored_dtype
from evalharness.tune.install import TuneInstall
from evalharness.tune.process import Event, follow
from evalharness.tune.settings import Settings

MANIFEST, LOG, TALK, JOB, ROWS = "manifest.json", "log.jsonl", "tune.log", "job.json", "tokens.parquet"
RECORD = "evalharness_tune.json"
"""In a checkpoint that is whole: as in `trainer/train.py`."""
KIND = "evalharness tuning"
TRAINER = Path(__file__).parent / "trainer" / "train.py"
_ENDS = {
    7: "not finite",
    8: "no memory",
    9: "refused",
}
_FEW_CHECKPOINTS = 10


@dataclass
class Plan:
    """All that is known before the training starts."""

    base: CheckpointInfo
    settings: Settings
    install: TuneInstall
    folder: Path
    identity: dict[str, Any]
    """What a training that is continued has to be the same in."""
    data: list[dict[str, str]]
    """Name and SHA-256 of each file."""
    made: Made
    estimate: Estimate
    dtype: str
    """Of the computation: bfloat16 or float32."""
    steps: int
    save_every: int
    keep: int
    cpu: bool
    accelerate_config: Path | None = None
    warning: str | None = None

    @property
    def rows(self) -> Path:
        return self.folder / ROWS


@dataclass
class Progress:
    """How far a training is; what the log says so far is in it."""

    step: int = 0
    steps: int = 0
    loss: float | None = None
    tokens: int = 0
    trained_tokens: int = 0
    seconds: float = 0.0
    """Of training, over all times that it was continued."""
    doing: str = "starting"
    first_loss: float | None = None
    checkpoints: list[str] = field(default_factory=list)
    recent: list[tuple[int, float]] = field(default_factory=list)
    """(tokens, seconds) of the latest steps."""
    own_steps: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None

    def take(self, event: Event) -> None:
        match event["event"]:
            case "step":
                self.step, self.steps = event["step"], event["steps"]
                self.loss = event["loss"]
                self.first_loss = event["loss"] if self.first_loss is None else self.first_loss
                self.tokens += event["tokens"]
                self.trained_tokens += event["trained_tokens"]
                self.seconds += event["seconds"]
                self.recent = [*self.recent[-49:], (event["tokens"], event["seconds"])]
                self.doing = "training"
            case "begin":
                self.step, self.steps, self.doing = event["step"], event["steps"], "training"
            case "ready":
                self.facts = {key: value for key, value in event.items() if key != "event"}
            case "saved":
                self.checkpoints.append(event["folder"])
            case "loading":
                self.doing = "loading the model"
            case "refused":
                self.problem = event["why"]
            case "notice":
                self.problem = event["text"]

    @property
    def tokens_per_s(self) -> float | None:
        seconds = sum(s for _, s in self.recent)
        return sum(t for t, _ in self.recent) / seconds if seconds else None

    @property
    def seconds_left(self) -> float | None:
        if not self.recent:
            return None
        return sum(s for _, s in self.recent) / len(self.recent) * (self.steps - self.step)


def has_bf16(*, gpu: bool) -> bool:
    """Whether the machine computes in bfloat16 (measured: 10 to 14 times as fast as float32 on such a CPU)."""
    if gpu:
        return True
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(flag in flags for flag in ("avx512_bf16", "amx_bf16", " bf16"))


def plan(
    model: Path,
    files: Sequence[Path],
    folder: Path,
    settings: Settings,
    install: TuneInstall,
    *,
    save_every: int | None = None,
    keep: int = 0,
    dtype: str | None = None,
    cpu: bool = False,
    accelerate_config: Path | None = None,
    on_line: Callable[[str], None] = lambda line: None,
) -> Plan | None:
    """Check everything, make the tokens, estimate; None where this training is finished already.

    Raises UserError before a long wait.
    """
    base = check_checkpoint(model)
    if base.max_position_embeddings is not None and settings.max_length > base.max_position_embeddings:
        raise UserError(
            f"--max-length {settings.max_length} is more than {model} takes ({base.max_position_embeddings})"
        )
    if accelerate_config is not None and not accelerate_config.is_file():
        raise UserError(
            f"--accelerate-config {accelerate_config}: no such file (make one: accelerate config)"
        )
    gpu = nvidia_gpu() and not cpu
    chosen = dtype or ("bfloat16" if has_bf16(gpu=gpu) else "float32")
    data = [{"file": path.name, "sha256": data_sha256(path)} for path in files]
    identity = {
        "base_sha256": base.identity,
        "data_sha256": [file["sha256"] for file in data],
        "settings": settings.to_json(),
        "dtype": chosen,
    }
    if _finished(folder, identity):
        return None
    made = make_rows(
        files, base.path, folder / ROWS, mode=settings.mode, max_length=settings.max_length,
        too_long=settings.too_long, python=install.server, on_line=on_line,
    )  # fmt: skip
    steps = settings.max_steps or math.ceil(math.ceil(made.rows / settings.batch) * settings.epochs)
    if save_every is None:
        # An adapter is small: some to choose from, and little is lost by a kill. Whole models: one an epoch.
        save_every = math.ceil(steps / _FEW_CHECKPOINTS) if settings.method == "lora" else 0
    number = math.ceil(steps / save_every) if save_every else math.ceil(settings.epochs)
    number = min(number, keep) if keep else number
    found = estimate(
        base, settings, longest=made.longest, most_trained=made.most_trained, bf16=chosen == "bfloat16",
        checkpoints=number,
    )  # fmt: skip
    warning = require_room(found, folder, gpu=gpu)
    return Plan(
        base, settings, install, folder, identity, data, made, found, chosen, steps, save_every, keep, cpu, accelerate_config,
        warning,
    )  # fmt: skip


def read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) and data.get("kind") == KIND else None


def _finished(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether the folder's training is done. Raises UserError where it is another training."""
    manifest = read_manifest(folder)
    if manifest is None:
        if any((folder / name).exists() for name in ("config.json", "adapter_config.json")):
            raise UserError(f"{folder} holds a model already; choose another folder with -o DIR")
        return False
    before = manifest["identity"]
    other = [key for key in ("base_sha256", "data_sha256", "dtype") if before.get(key) != identity[key]]
    other += [
        f"{key} {before['settings'].get(key)} there, {value} now"
        for key, value in identity["settings"].items()
        if before["settings"].get(key) != value
    ]
    if other:
        raise UserError(
            f"{folder} holds another training ({'; '.join(other)}); choose another folder with -o DIR"
        )
    return bool(manifest["status"] == "done")


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
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "cpu": planned.cpu,
        "resume": None if resume is None else str(resume.resolve()),
        "listen": listen,
        "launched": planned.accelerate_config is not None,
        "tokenizer_files": list(TOKENIZER_FILES),
    }


def command_of(planned: Plan) -> list[str]:
    job = str(planned.folder.resolve() / JOB)
    python = [str(planned.install.python), "-I"]
    if planned.accelerate_config is None:
        return [*python, str(TRAINER), job]
    config = str(planned.accelerate_config.resolve())
    return [*python, "-m", "accelerate.commands.launch", "--config_file", config, str(TRAINER), job]


def prepare(planned: Plan) -> list[str]:
    """Write what other machines need to start the training by themselves; the command that starts it."""
    resume = latest_checkpoint(planned.folder)
    write_whole(planned.folder / JOB, json.dumps(job_of(planned, resume, listen=False), indent=2) + "\n")
    _write_manifest(planned, Progress(steps=planned.steps), "prepared", [])
    return command_of(planned)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Raises UserError where another process trains in this folder."""
    import fcntl

    with (folder / ".lock").open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is training in {folder}") from None
        yield


def train(
    planned: Plan,
    progress: Progress,
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


def _failure(planned: Plan, status: int, progress: Progress) -> UserError | InfrastructureError:
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


def _continue_log(folder: Path, step: int, progress: Progress) -> None:
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


def _write_manifest(planned: Plan, progress: Progress, status: str, command: Sequence[str]) -> None:
    manifest = {
        "kind": KIND,
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
