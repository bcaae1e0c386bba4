"""The task tables: the official questions with the user's page store, the open suite with its generated world."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from envs.base import Difficulty, InvalidTaskError, MissingDataError, Suite, Task
from envs.hotpotqa.pages import PageStore, PageStoreError, open_store
from envs.hotpotqa.questions import QUESTIONS, Question, make_questions
from envs.hotpotqa.store_writer import write_small
from envs.hotpotqa.world import make_world
from evalharness.paths import cache_folder

FAMILY = "hotpotqa"
OFFICIAL = "hotpotqa"
"""The suite of the real questions."""
OFFICIAL_QUESTIONS = 7405
HARD_TURNS = 5
"""Turns of the oracle from which an open task counts as hard: a name that is shared, or a fact further down."""

_HOW = "evalharness data import hotpotqa FILE"


def data_files(data: Path) -> tuple[Path, Path]:
    """(questions, page store) in the user's data folder."""
    return data / FAMILY / "questions.jsonl", data / FAMILY / "pages.sqlite"


def load_tasks(suite: Suite, data: Path | None, seed: int) -> list[Task]:
    """All tasks of a suite in order; `seed` matters to `open` alone."""
    if suite == "open":
        return list(generate(seed))
    if suite != OFFICIAL:
        raise InvalidTaskError(f"HotpotQA has no suite {suite!r}")
    return _official(data)


def generate(seed: int) -> Iterator[Task]:
    """The open suite of that seed."""
    world = make_world(seed)
    for index, question in enumerate(make_questions(world)):
        yield _task(
            "open",
            index,
            question.text,
            question.answer,
            question.kind,
            "hard" if question.turns >= HARD_TURNS else "easy",
            question.supporting,
            {"world": seed, "pages_sha256": world.sha256},
        )


def _task(
    suite: str,
    index: int,
    question: str,
    answer: str,
    kind: str,
    level: Difficulty,
    supporting: tuple[str, ...],
    more: Mapping[str, Any],
) -> Task:
    digits = 4 if suite == OFFICIAL else 3
    return Task(
        id=f"{FAMILY}/{suite}/{index:0{digits}d}",
        family=FAMILY,
        suite=suite,
        index=index,
        goal=question,
        difficulty=level,
        kind=kind,
        labels="official" if suite == OFFICIAL else "simulator",
        subgoals=tuple(f"open the page {title}" for title in supporting),
        payload={"answer": answer, "supporting": list(supporting), **more},
    )


def _official(data: Path | None) -> list[Task]:
    if data is None:
        raise MissingDataError("HotpotQA's questions are not part of this project", _HOW)
    questions, pages = data_files(data)
    for path, what in ((questions, "questions"), (pages, "page store")):
        if not path.is_file():
            raise MissingDataError(f"HotpotQA: no {what} at {path}", _HOW)
    sha256 = _opened(pages).sha256
    try:
        rows = [json.loads(line) for line in questions.read_text(encoding="utf-8").splitlines()]
        return [
            _task(
                OFFICIAL,
                index,
                row["question"],
                row["answer"],
                "yes/no" if row["answer"] in ("yes", "no") else row["type"],
                "easy" if row["type"] == "comparison" else "hard",
                tuple(row["supporting"]),
                {"id": row["id"], "pages_sha256": sha256},
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
        world = make_world(seed)
        return {
            "pages": len(world.by_title),
            "pages_sha256": world.sha256,
            "source": f"generated, seed {seed}",
        }
    if data is None:
        return {}
    store = _opened(data_files(data)[1])
    return {"pages": len(store), "pages_sha256": store.sha256, "source": store.meta.get("origin", "")}


def store_of(task: Task, data: Path | None) -> PageStore:
    """The page store that a task is played on. That of an open task is made when it is first needed."""
    wanted = task.payload.get("pages_sha256")
    if task.suite != "open":
        store = _opened(data_files(data)[1]) if data is not None else None
        if store is None or store.sha256 != wanted:
            raise InvalidTaskError(f"{task.id} was made with another page store than the one in {data}")
        return store
    seed = task.payload.get("world")
    if not isinstance(seed, int) or not isinstance(wanted, str):
        raise InvalidTaskError(f"{task.id} is not a HotpotQA task: its payload needs a world and its hash")
    path = _cache_folder() / f"{make_name(wanted)}.sqlite"
    try:
        return open_store(path)
    except PageStoreError:
        pass
    world = make_world(seed)
    if world.sha256 != wanted:
        raise InvalidTaskError(f"{task.id}: this version makes another world of seed {seed}")
    source = f"world of seed {seed}"
    try:
        write_small(path, world.pages, world.redirects, source)
    except (OSError, sqlite3.Error):  # no cache can be written: a file that goes with the process
        path = Path(_scratch().name) / path.name
        write_small(path, world.pages, world.redirects, source)
    return open_store(path)


def make_name(sha256: str) -> str:
    """A file name for a hash that came out of a task: hexadecimal digits alone."""
    name = "".join(c for c in sha256 if c in "0123456789abcdef")
    if len(name) != 64 or name != sha256:
        raise InvalidTaskError("the hash of a page store has 64 hexadecimal digits")
    return name


_scratch_folder: list[tempfile.TemporaryDirectory[str]] = []


def _scratch() -> tempfile.TemporaryDirectory[str]:
    if not _scratch_folder:
        _scratch_folder.append(tempfile.TemporaryDirectory(prefix="evalharness-hotpotqa-"))
    return _scratch_folder[0]


def _cache_folder() -> Path:
    return cache_folder() / FAMILY


__all__ = ["FAMILY", "OFFICIAL", "OFFICIAL_QUESTIONS", "QUESTIONS", "Question", "generate", "load_tasks"]
