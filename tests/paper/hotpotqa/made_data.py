"""Files as HotpotQA's official ones are made."""

from __future__ import annotations

import bz2
import io
import json
import tarfile
from pathlib import Path
from typing import Any


def silent(what: str, done: int, of: int | None) -> None:
    pass


def questions(count: int) -> list[dict[str, Any]]:
    """As the official distractor file has them."""
    return [
        {
            "_id": f"id{i}",
            "question": f"Who wrote book {i}?",
            "answer": f"Writer {i}",
            "type": "bridge",
            "level": "hard",
            "supporting_facts": [[f"Book {i}", 0], [f"Writer {i}", 1], [f"Writer {i}", 0]],
            "context": [
                [f"Book {i}", [f"Book {i} was written by Writer {i}.", " It is long."]],
                [f"Writer {i}", [f"Writer {i} wrote it.", " And no more."]],
                ["Shared", ["A page of all questions."]],
            ],
        }
        for i in range(count)
    ]


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content))
    return path


def abstracts(path: Path, files: int, *, broken: int | None = None) -> Path:
    """A tar as the official one: packed JSON lines in folders, the whole packed again."""
    with tarfile.open(path, "w:bz2") as tar:
        for number in range(files):
            lines = [
                json.dumps({"id": str(n), "title": f"Page {number} {n}", "text": [f"First of {n}.", " Second."],
                            "charoffset": [], "text_with_links": ["<a href=x>First</a>"]})
                for n in range(3)
            ]  # fmt: skip
            content = bz2.compress("\n".join(lines).encode() if number != broken else b"{")
            member = tarfile.TarInfo(f"enwiki/A{number:02d}/wiki_00.bz2")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
