"""Build open suites: generate tasks from a seed, prove by a played plan that each can be solved, and store them.

The suite of seed 0 is part of the package: the families contain its tasks, and `open_proofs.csv` has their content
hashes and proofs. The suite of any other seed is generated once, and stored in the user's folder with the plans that
prove its tasks solvable. The content of a file depends only on family and seed, so two machines write the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import UserError, system_errors
from evalharness.base.paths import home_folder, ranges_folder, write_whole
from evalharness.base.reading import parse_json, read_text
from evalharness.envs.base import MAX_TURNS, MIN_TURNS, EnvSpec, InvalidTaskError, Task, tasks_hash

if TYPE_CHECKING:
    from evalharness.envs.base import TextEnv

SCHEMA = 1
FROZEN_SEED = 0
"""Seed of the suite that is part of the package."""


@dataclass(frozen=True)
class Proof:
    """Proof that a task can be solved: the oracle's plan reached success and full progress."""

    plan_turns: int
    plan_sha256: str
    """SHA-256 of the plan's actions, joined by line breaks."""


@dataclass(frozen=True)
class Proven:
    task: Task
    proof: Proof


class UnprovenTaskError(Exception):
    """A generated task cannot be solved by its plan, which is an error of the family's generator."""


def plan_hash(plan: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(plan).encode()).hexdigest()


def prove(environment: TextEnv, task: Task, max_turns: int = MAX_TURNS) -> Proof:
    """Play the oracle's plan and return the proof. Raise UnprovenTaskError unless the plan has 3 to `max_turns` turns,
    and its last action solves the task with full progress."""
    environment.reset(options={"task": task})
    plan = environment.oracle()
    if not MIN_TURNS <= len(plan) <= max_turns:
        raise UnprovenTaskError(f"{task.id}: a plan of {len(plan)} turns")
    for turn, action in enumerate(plan, 1):
        _, _, terminated, _, info = environment.step(action)
        if terminated != (turn == len(plan)):
            raise UnprovenTaskError(
                f"{task.id}: turn {turn} of {len(plan)} " + ("ends it" if terminated else "does not end it")
            )
    if not info["success"] or info["progress"] < 1.0:
        raise UnprovenTaskError(f"{task.id}: the plan ends with progress {info['progress']:.2f}")
    return Proof(len(plan), plan_hash(plan))


def generate(spec: EnvSpec, suite_seed: int) -> Iterable[Task]:
    """Generate a family's tasks, also for seed 0, instead of reading stored tasks."""
    suites = spec.suites
    return suites.generate(suite_seed) if suites.generate else suites.load_tasks("open", None, suite_seed)


def build(spec: EnvSpec, suite_seed: int, on_task: Callable[[Proven], None] = lambda _: None) -> list[Proven]:
    """Generate and prove a family's suite. Call `on_task` with each finished task.

    Raise UnprovenTaskError if a task is invalid, or if the number of tasks is wrong.
    """
    environment = spec.make(None)
    rows: list[Proven] = []
    try:
        for task in generate(spec, suite_seed):
            rows.append(Proven(task, prove(environment, task, min(spec.own.max_turns, MAX_TURNS))))
            on_task(rows[-1])
    finally:
        environment.close()
    if len(rows) != spec.suites.expected["open"]:
        raise UnprovenTaskError(f"{spec.family}: {len(rows)} tasks, not {spec.suites.expected['open']}")
    return rows


def suite_folder(suite_seed: int) -> Path:
    """Return the folder of an open suite: `suites/open-N` in the user's folder."""
    return home_folder() / "suites" / f"open-{suite_seed}"


def suite_file(family: str, suite_seed: int, folder: Path | None = None) -> Path:
    return (folder or suite_folder(suite_seed)) / f"{family}.jsonl"


def suite_command(suite_seed: int, family: str | None = None) -> str:
    """Return the command that builds and stores a suite, or only one family of the suite."""
    return f"evalharness data suite build --suite-seed {suite_seed}" + (
        f" --tasks {family}" if family else ""
    )


def dumps(spec: EnvSpec, suite_seed: int, rows: Sequence[Proven]) -> str:
    """Return the text of the suite's file: a line with the hash of all tasks, then one line per task."""
    head = {
        "schema": SCHEMA,
        "suite": "open",
        "suite_seed": suite_seed,
        "family": spec.family,
        "version": spec.suites.open_version,
        "tasks": len(rows),
        "tasks_sha256": tasks_hash([row.task for row in rows]),
    }
    lines: Iterator[dict[str, Any]] = (
        {"proof": asdict(row.proof), "task": row.task.to_json()} for row in rows
    )
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in [head, *lines])


def freeze(spec: EnvSpec, suite_seed: int, rows: Sequence[Proven], folder: Path | None = None) -> Path:
    """Write the suite's file; if writing fails, there is no partial file."""
    path = suite_file(spec.family, suite_seed, folder)
    with system_errors(f"cannot write the suite to {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, dumps(spec, suite_seed, rows))
    return path


def read_frozen(spec: EnvSpec, suite_seed: int, folder: Path | None = None) -> list[Proven] | None:
    """Read a family's stored suite of a seed other than 0, and check its hash; return None if it does not exist."""
    path = suite_file(spec.family, suite_seed, folder)
    again = f"make it again: {suite_command(suite_seed, spec.family)} --force"
    try:
        head, *lines = map(parse_json, read_text(path).splitlines())
        rows = [
            Proven(
                Task.from_json(line["task"]),
                Proof(int(line["proof"]["plan_turns"]), str(line["proof"]["plan_sha256"])),
            )
            for line in lines
        ]
        expected, version, actual = (
            head["tasks_sha256"],
            head.get("version", 1),
            tasks_hash([r.task for r in rows]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is not the file of an open suite ({error}); {again}") from None
    if version != spec.suites.open_version:
        raise UserError(
            f"{path} has version {version} of the open {spec.title} suite; the current version is "
            f"{spec.suites.open_version}; {again}"
        )
    if expected != actual:
        raise UserError(f"{path} does not match its content hash; {again}")
    return rows


PROOFS = "open_proofs.csv"
_COLUMNS = ("task_id", "task_hash", "kind", "difficulty", "plan_turns", "plan_sha256")


@dataclass(frozen=True)
class FrozenTask:
    task_hash: str
    proof: Proof


@cache
def read_frozen_proofs() -> Mapping[str, FrozenTask]:
    """Return task id -> content hash and proof of each task of suite seed 0."""
    with (ranges_folder() / PROOFS).open(newline="", encoding="utf-8") as file:
        return {
            row["task_id"]: FrozenTask(row["task_hash"], Proof(int(row["plan_turns"]), row["plan_sha256"]))
            for row in csv.DictReader(file)
        }


def read_family_proofs(family: str) -> Mapping[str, FrozenTask]:
    """Return the rows of `read_frozen_proofs` for a family; empty if the family comes from another package."""
    return {task_id: row for task_id, row in read_frozen_proofs().items() if task_id.startswith(f"{family}/")}


def write_proofs(path: Path, rows: Iterable[Proven]) -> None:
    """Write the file that `read_frozen_proofs` reads, with rows sorted by task id."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for row in sorted(rows, key=lambda row: row.task.id):
            task, proof = row.task, row.proof
            writer.writerow(
                [task.id, task.content_hash, task.kind, task.difficulty, proof.plan_turns, proof.plan_sha256]
            )


def check_frozen(spec: EnvSpec, tasks: Sequence[Task]) -> None:
    """Raise UserError if tasks of suite seed 0 have other hashes than in `open_proofs.csv`; ignore other packages."""
    known = read_family_proofs(spec.family)
    if known and [(task.id, task.content_hash) for task in tasks] != [
        (task_id, row.task_hash) for task_id, row in known.items()
    ]:
        raise UserError(
            f"this installation generates {spec.title} tasks that differ from the open suite of this version; "
            "reinstall evalharness"
        )


def differences(spec: EnvSpec, suite_seed: int, rows: Sequence[Proven]) -> list[str]:
    """Return the ids of tasks that differ between a new build and the stored suite. Raise UserError without a suite."""
    if suite_seed == FROZEN_SEED:
        frozen = read_family_proofs(spec.family)
    else:
        stored = read_frozen(spec, suite_seed)
        if stored is None:
            raise UserError(
                f"there is no suite of seed {suite_seed} for {spec.family} in {suite_folder(suite_seed)}; "
                f"make it with: {suite_command(suite_seed, spec.family)}"
            )
        frozen = {row.task.id: FrozenTask(row.task.content_hash, row.proof) for row in stored}
    built = {row.task.id: FrozenTask(row.task.content_hash, row.proof) for row in rows}
    return sorted(
        task_id for task_id in built.keys() | frozen.keys() if built.get(task_id) != frozen.get(task_id)
    )


def load_open(spec: EnvSpec, suite_seed: int, making: Callable[[str], None]) -> list[Task]:
    """Load a family's tasks of an open suite. If the suite is not stored yet, call `making` with a message, then build.

    Raise UserError if the stored suite is invalid, InvalidTaskError if the generator fails.
    """
    return [replace(task, suite_seed=suite_seed) for task in _load_open(spec, suite_seed, making)]


def _load_open(spec: EnvSpec, suite_seed: int, making: Callable[[str], None]) -> list[Task]:
    if suite_seed == FROZEN_SEED:
        tasks = spec.suites.load_tasks("open", None, suite_seed)
        check_frozen(spec, tasks)
        return tasks
    if spec.suites.generate is None:
        return spec.suites.load_tasks("open", None, suite_seed)
    rows = read_frozen(spec, suite_seed)
    if rows is None:
        making(
            f"making the open suite of seed {suite_seed}: {spec.title}, {spec.suites.expected['open']} tasks"
            f" (once; ahead of time: {suite_command(suite_seed)})"
        )
        try:
            rows = build(spec, suite_seed)
        except UnprovenTaskError as error:
            raise InvalidTaskError(f"the generator of {spec.title} failed: {error}") from error
        freeze(spec, suite_seed, rows)
    return [row.task for row in rows]
