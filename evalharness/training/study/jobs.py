"""A study's jobs, worked off in processes of their own: as many at once as there are slots, each at most once.

`jobs.jsonl` says what is done, a line a job. A job that failed, or that a kill ended, is started again by the next
start; every command continues what it finds.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from evalharness.base.reading import read_object, sha256_of
from evalharness.base.text import printable
from evalharness.play.workers.child import die_with_parent
from evalharness.records.lines import LineFile, read_lines
from evalharness.training.study.plan import Job, Kind, Plan

LEDGER, LOGS = "jobs.jsonl", "logs"
Status = Literal["waiting", "running", "done", "failed", "blocked"]
PROGRAM = (sys.executable, "-P", "-m", "evalharness")
_GRACE = 60.0
"""Seconds that a command has to end after Ctrl-C: a training saves a checkpoint after its step."""
_LONGEST = 200
"""Characters of a reason."""


@dataclass
class State:
    status: Status = "waiting"
    seconds: float | None = None
    """Of the start that finished it."""
    why: str = ""
    """Of one that failed or is blocked."""
    started: float = 0.0


@dataclass
class StudyProgress:
    plan: Plan
    states: dict[str, State] = field(default_factory=dict)

    def of(self, kind: Kind | None = None) -> list[State]:
        """Of all jobs, or of those of a kind."""
        jobs = self.plan.jobs.values()
        return [self.states[job.name] for job in jobs if kind in (None, job.kind)]

    def count(self, status: Status, kind: Kind | None = None) -> int:
        return sum(state.status == status for state in self.of(kind))

    def seconds_of(self, kind: Kind) -> float | None:
        """Mean of the finished ones; None before there is one."""
        done = [state.seconds for state in self.of(kind) if state.seconds is not None]
        return sum(done) / len(done) if done else None


def identity_of(job: Job, plan: Plan, folder: Path) -> str:
    """Of its command and those of the jobs before it, wherever the study's folder lies, and of the files they read."""
    chain: dict[str, Job] = {}
    _add_chain(job, plan, chain)
    words = "\0".join(word for each in chain.values() for word in each.words).replace(str(folder), "")
    files = dict.fromkeys(path for each in chain.values() for path in each.reads)
    content = "".join(f"\0{_content(path)}" for path in files)
    return hashlib.sha256((words + content).encode(errors="surrogateescape")).hexdigest()


def _add_chain(job: Job, plan: Plan, chain: dict[str, Job]) -> None:
    """Every job before it, then itself, each once."""
    for name in job.needs:
        if name not in chain:
            _add_chain(plan.jobs[name], plan, chain)
    chain[job.name] = job


def _content(path: Path) -> str:
    """What is in a file; "" where it cannot be read, which its job says."""
    try:
        now = path.stat()
        return _hashed(path, now.st_mtime_ns, now.st_size)
    except OSError:
        return ""


@cache
def _hashed(path: Path, changed: int, size: int) -> str:
    return sha256_of(path)


def log_of(job: Job, folder: Path) -> Path:
    return folder / LOGS / f"{job.name.replace(' ', '-')}.log"


def read_ledger(folder: Path) -> dict[str, dict[str, Any]]:
    """Job -> its last line. Raises UserError on damage."""
    lines = read_lines(folder / LEDGER, "its job is looked at again", _line)
    return {line["job"]: line for line in lines}


def read_progress(plan: Plan, folder: Path) -> StudyProgress:
    """What earlier sessions have done. Raises UserError on damage."""
    done, states = read_ledger(folder), {}
    for job in plan.jobs.values():
        line = done.get(job.name, {})
        same = line.get("identity") == identity_of(job, plan, folder) and job.makes.exists()
        states[job.name] = State("done", line["seconds"]) if same else State()
    return StudyProgress(plan, states)


def _line(raw: bytes) -> dict[str, Any]:
    line = read_object(raw)
    return {"job": str(line["job"]), "identity": str(line["identity"]), "seconds": float(line["seconds"])}


async def work(
    progress: StudyProgress,
    folder: Path,
    slots: Sequence[str | None],
    program: Sequence[str] = PROGRAM,
) -> None:
    """Every job that is not done. `slots`: the GPUs of each, as CUDA_VISIBLE_DEVICES names them; None: as they are.

    A job that fails keeps none back but those that need it. Raises StoreError where the ledger cannot be written.
    """
    (folder / LOGS).mkdir(parents=True, exist_ok=True)
    ledger = LineFile(folder / LEDGER)
    ledger.drop_torn_line()
    free, running = list(slots), dict[asyncio.Task[None], str | None]()
    try:
        while True:
            for job in _ready(progress):
                if not free:
                    break
                slot = free.pop(0)
                state = progress.states[job.name]
                state.status, state.started = "running", time.monotonic()
                identity = identity_of(job, progress.plan, folder)
                running[asyncio.create_task(_one(job, state, folder, slot, ledger, program, identity))] = slot
            if not running:
                return
            finished, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in finished:
                free.append(running.pop(task))
                task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        ledger.close()


def _ready(progress: StudyProgress) -> list[Job]:
    """Those that can be started; those that cannot ever are marked."""
    found = []
    for job in progress.plan.jobs.values():
        state, before = progress.states[job.name], [progress.states[name] for name in job.needs]
        if state.status != "waiting":
            continue
        if lost := next((n for n in job.needs if progress.states[n].status in ("failed", "blocked")), None):
            state.status, state.why = "blocked", f"{lost} failed"
        elif all(each.status == "done" for each in before):
            found.append(job)
    return found


async def _one(
    job: Job,
    state: State,
    folder: Path,
    slot: str | None,
    ledger: LineFile,
    program: Sequence[str],
    identity: str,
) -> None:
    log = log_of(job, folder)
    status = await _command(
        [*program, *job.words], log, {} if slot is None else {"CUDA_VISIBLE_DEVICES": slot}
    )
    seconds = time.monotonic() - state.started
    if status == 0 and job.makes.exists():
        ledger.append({"job": job.name, "identity": identity, "seconds": round(seconds, 1)})
        state.status, state.seconds = "done", seconds
    else:
        state.status, state.why = "failed", reason(status, log)


async def _command(words: Sequence[str], log: Path, variables: Mapping[str, str]) -> int:
    """Its exit status. Cancelled, it is asked to end, and killed where it does not."""
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env={**os.environ, **variables},
            start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
            preexec_fn=die_with_parent,
        )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        for kind in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(kind)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _GRACE)
                break
        raise


def reason(status: int, log: Path) -> str:
    """Why a command failed: the last thing that it said of itself."""
    if status in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "killed, often because memory did not suffice"
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-200:]
    except OSError:
        lines = []
    own = [line for line in lines if re.match(r"evalharness( \w+)*: ", line)]
    last = next(reversed(own or [line for line in lines if line.strip()]), f"exit status {status}")
    text = re.sub(r"^evalharness( \w+)*: (error: )?", "", last.strip())
    return printable(text, single_line=True)[:_LONGEST]
