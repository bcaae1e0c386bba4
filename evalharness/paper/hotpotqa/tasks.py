"""The task tables: the official questions with the user's page store, the open suite with its generated world."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalharness.base.reading import read_text
from evalharness.envs.base import InvalidTaskError, MissingDataError, Suite, Task
from evalharness.paper.hotpotqa.generator import FAMILY, generate, open_store_of, pages_to_open
from evalharness.paper.hotpotqa.live import LivePages
from evalharness.paper.hotpotqa.live import provenance as live_provenance
from evalharness.paper.hotpotqa.pages import Pages, PageStore, PageStoreError, open_store
from evalharness.paper.hotpotqa.world import make_encyclopedia

OFFICIAL = "hotpotqa"
"""The suite of the real questions."""
LIVE = "hotpotqa-live"
"""The same questions, with the live Wikipedia to search."""
OFFICIAL_QUESTIONS = 7405

_HOW = "evalharness data import hotpotqa FILE"


def data_files(data: Path) -> tuple[Path, Path]:
    """(questions, page store) in the user's data folder."""
    return data / FAMILY / "questions.jsonl", data / FAMILY / "pages.sqlite"


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """All tasks of a suite in order; `seed` matters to `open` alone."""
    if suite == "open":
        return list(generate(seed))
    if suite not in (OFFICIAL, LIVE):
        raise InvalidTaskError(f"HotpotQA has no suite {suite!r}")
    return _official(suite, data)


def record_file(data: Path) -> Path:
    """Where the live Wikipedia's answers are kept."""
    return data / FAMILY / "wikipedia.sqlite"


def _official(suite: Suite, data: Path | None) -> list[Task]:
    if data is None:
        raise MissingDataError("HotpotQA's questions are not part of this project", _HOW)
    questions, pages = data_files(data)
    needed = {questions: "questions", **({pages: "page store"} if suite == OFFICIAL else {})}
    for path, what in needed.items():
        if not path.is_file():
            raise MissingDataError(f"HotpotQA: no {what} at {path}", _HOW)
    sha256 = _opened(pages).sha256 if suite == OFFICIAL else LIVE
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
                subgoals=pages_to_open(tuple(row["supporting"])),
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


def _opened(path: Path) -> PageStore:
    try:
        return open_store(path)
    except PageStoreError as error:
        raise MissingDataError(str(error), _HOW) from None


def provenance(suite: Suite, data: Path | None, seed: int) -> dict[str, Any]:
    """What a run's manifest says of the corpus."""
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
        return live_provenance(record_file(data))
    store = _opened(data_files(data)[1])
    return {"pages": len(store), "pages_sha256": store.sha256, "source": store.meta.get("origin", "")}


def store_of(task: Task, data: Path | None) -> Pages:
    """The pages that a task is played on. The store of an open task is made when it is first needed."""
    if task.suite == "open":
        return open_store_of(task)
    if task.suite == LIVE:
        if data is None:
            raise InvalidTaskError(f"{task.id} needs a data folder, for what Wikipedia answers")
        return LivePages(record_file(data))
    store = _opened(data_files(data)[1]) if data is not None else None
    if store is None or store.sha256 != task.payload.get("pages_sha256"):
        raise InvalidTaskError(f"{task.id} was made with another page store than the one in {data}")
    return store
