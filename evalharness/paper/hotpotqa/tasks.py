"""Load the tasks of HotpotQA's suites, and the page store of a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalharness.base.reading import read_text
from evalharness.envs.base import InvalidTaskError, MissingDataError, Suite, Task
from evalharness.paper.hotpotqa.generator import FAMILY, generate, list_subgoals, open_task_store
from evalharness.paper.hotpotqa.live import LivePages, describe_live
from evalharness.paper.hotpotqa.pages import Pages, PageStore, PageStoreError, open_store
from evalharness.paper.hotpotqa.world import make_encyclopedia

OFFICIAL = "hotpotqa"
"""The suite with HotpotQA's own questions and the imported page store."""
LIVE = "hotpotqa-live"
"""The suite with HotpotQA's own questions and the live Wikipedia."""
OFFICIAL_QUESTIONS = 7405

_HOW = "evalharness data import hotpotqa FILE"


def data_files(data: Path) -> tuple[Path, Path]:
    """Return the files of questions and pages in the user's data folder."""
    return data / FAMILY / "questions.jsonl", data / FAMILY / "pages.sqlite"


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """Return all tasks of a suite in order. `seed` is used only by the generated suite `open`."""
    if suite == "open":
        return list(generate(seed))
    if suite not in (OFFICIAL, LIVE):
        raise InvalidTaskError(f"HotpotQA has no suite {suite!r}")
    return _load_official(suite, data)


def record_file(data: Path) -> Path:
    """Return the file with the recorded answers of the live Wikipedia."""
    return data / FAMILY / "wikipedia.sqlite"


def _load_official(suite: Suite, data: Path | None) -> list[Task]:
    if data is None:
        raise MissingDataError("HotpotQA's questions are not part of this project", _HOW)
    questions, pages = data_files(data)
    needed = {questions: "questions", **({pages: "page store"} if suite == OFFICIAL else {})}
    for path, what in needed.items():
        if not path.is_file():
            raise MissingDataError(f"HotpotQA: no {what} at {path}", _HOW)
    sha256 = _open_store(pages).sha256 if suite == OFFICIAL else LIVE
    try:
        rows = [json.loads(line) for line in read_text(questions).splitlines()]
        return [
            Task(
                id=f"{FAMILY}/{suite}/{index:04d}",
                family=FAMILY,
                suite=suite,
                index=index,
                goal=row["question"],
                difficulty="easy" if row["type"] == "comparison" else "hard",
                kind="yes/no" if row["answer"] in ("yes", "no") else row["type"],
                labels="official",
                subgoals=list_subgoals(tuple(row["supporting"])),
                payload={
                    "answer": row["answer"],
                    "supporting": list(row["supporting"]),
                    "id": row["id"],
                    "pages_sha256": sha256,
                },
            )
            for index, row in enumerate(rows)
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise MissingDataError(f"{questions} is not as imported ({error!r})", _HOW) from None


def _open_store(path: Path) -> PageStore:
    try:
        return open_store(path)
    except PageStoreError as error:
        raise MissingDataError(str(error), _HOW) from None


def provenance(suite: Suite, data: Path | None, seed: int) -> dict[str, Any]:
    """Return the description of the corpus for a run's manifest."""
    if suite == "open":
        world = make_encyclopedia(seed)
        return {
            "pages": len(world.by_title),
            "pages_sha256": world.sha256,
            "source": f"generated, seed {seed}",
        }
    if data is None:
        return {}
    if suite == LIVE:
        return describe_live(record_file(data))
    store = _open_store(data_files(data)[1])
    return {"pages": len(store), "pages_sha256": store.sha256, "source": store.meta.get("origin", "")}


def find_store(task: Task, data: Path | None) -> Pages:
    """Return the pages that a task searches. If the store of a generated task does not exist, it is made."""
    if task.suite == "open":
        return open_task_store(task)
    if task.suite == LIVE:
        if data is None:
            raise InvalidTaskError(f"{task.id} needs a data folder, for what Wikipedia answers")
        return LivePages(record_file(data))
    store = _open_store(data_files(data)[1]) if data is not None else None
    if store is None or store.sha256 != task.payload.get("pages_sha256"):
        raise InvalidTaskError(f"{task.id} was made with another page store than the one in {data}")
    return store
