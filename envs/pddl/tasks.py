"""Load the tasks of AgentBoard's suite and of the open suite."""

from __future__ import annotations

from pathlib import Path

from evalharness.base.reading import read_text
from evalharness.envs.base import InvalidTaskError, MissingDataError, Suite, Task
from evalharness.envs.frozen import FROZEN_SEED
from evalharness.envs.pddl.problem import DOMAINS, make_task
from evalharness.envs.pddl_text import PddlError
from evalharness.envs.published import folder_of, label_rows


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """Return all tasks of a suite in order; only `open` uses `seed`, only `agentboard` uses `data`."""
    if suite == "agentboard":
        return _load_published(data)
    from evalharness.envs.pddl.open.generator import generate, read_frozen_suite

    return read_frozen_suite() if seed == FROZEN_SEED else list(generate(seed))


def _load_published(data: Path | None) -> list[Task]:
    folder = folder_of(data, "pddl", "PDDL")
    rows = label_rows(folder, "PDDL")
    tasks: list[Task] = []
    for kind in DOMAINS:
        domain_text = _read(folder / f"{kind}.pddl")
        # AgentBoard's order is the alphabetical order of file names: problem1, problem10, problem2, ...
        for file in sorted((folder / kind).glob("*.pddl"), key=lambda path: path.name):
            index = len(tasks)
            if index >= len(rows) or rows[index]["additional_info"]["subtask"] != kind:
                raise InvalidTaskError(
                    f"{folder / 'test.jsonl'} does not match the problem files at row {index}; "
                    "get both with: evalharness data fetch"
                )
            try:
                task = make_task(
                    "agentboard",
                    index,
                    kind,
                    rows[index]["difficulty"],
                    domain_text,
                    _read(file),
                    file=file.name,
                )
            except PddlError as error:
                raise InvalidTaskError(
                    f"{file}: {error}; get the data again: evalharness data fetch"
                ) from None
            tasks.append(task)
    if len(tasks) != len(rows):
        raise InvalidTaskError(
            f"{folder} has {len(tasks)} problem files for {len(rows)} labels; get both with: evalharness data fetch"
        )
    return tasks


def _read(file: Path) -> str:
    try:
        return read_text(file)
    except FileNotFoundError:
        raise MissingDataError(f"{file} is missing") from None
