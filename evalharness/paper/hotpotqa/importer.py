"""Import HotpotQA's data: the official question files, the Wikipedia abstracts, or pages of the user's own.

The content of a file determines its kind. File paths inside an archive are ignored, because they could point anywhere.
A question file with paragraphs also gives a small page store, but never replaces another source's store.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import sqlite3
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from evalharness.base.paths import write_whole
from evalharness.envs.base import ImportProgress, ImportRefusedError
from evalharness.paper.hotpotqa.pages import Page, PageStore, PageStoreError, split_sentences
from evalharness.paper.hotpotqa.store_writer import StoreWriter
from evalharness.paper.hotpotqa.tasks import OFFICIAL_QUESTIONS, data_files

ACCEPTED = (
    "hotpot_dev_distractor_v1.json, hotpot_dev_v1_simplified.json, the tar of abstracts, or JSON lines with a title "
    "and a text each"
)
LARGEST_QUESTIONS = 500 * 2**20
"""Largest size in bytes of a question file; the official ones have less than 50 MB."""
LARGEST_MEMBER = 64 * 2**20
"""Largest size in bytes of one file in the tar of abstracts; the official ones have 0.1 MB."""
LARGEST_UNPACKED = 512 * 2**20
LARGEST_LINE = 32 * 2**20
_MEMBERS_A_COMMIT = 20
_LINES_A_COMMIT = 10_000

_DAMAGE = (EOFError, OSError, tarfile.TarError, lzma.LZMAError, zlib.error, ValueError, RecursionError)


def import_file(source: Path, data: Path, progress: ImportProgress) -> Sequence[str]:
    """Import `source`, and return messages about the result. Raises ImportRefusedError."""
    if not source.is_file():
        raise ImportRefusedError(f"{source} is not a file; name one of {ACCEPTED}")
    try:
        with source.open("rb") as raw:
            start = _open_unpacked(raw).read(512)
    except _DAMAGE as error:
        raise ImportRefusedError(f"{source} is damaged ({error}); get it again") from error
    if start[257:262] == b"ustar":
        return _import_pages(source, data, progress, "abstracts", _read_abstracts)
    if start.lstrip().startswith(b"{"):
        return _import_pages(source, data, progress, "own pages", _read_own_pages)
    if start.lstrip().startswith(b"["):
        return _import_questions(source, data, progress)
    raise ImportRefusedError(f"{source} is none of {ACCEPTED}")


# --- questions ---------------------------------------------------------------------------------------------------


def _import_questions(source: Path, data: Path, progress: ImportProgress) -> list[str]:
    if source.stat().st_size > LARGEST_QUESTIONS:
        raise ImportRefusedError(f"{source} is too large for a question file")
    progress("reading questions", 0, None)
    try:
        rows = json.loads(source.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ImportRefusedError(
            f"{source} is no whole JSON file ({error}); was the download cut off?"
        ) from error
    questions = [_read_question(row, position, source) for position, row in enumerate(rows)]
    if not questions:
        raise ImportRefusedError(f"{source} holds no question")
    pages = _read_contexts(
        source, rows
    )  # before anything is written, so that a refused file replaces nothing
    target, store = data_files(data)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, "".join(json.dumps(question) + "\n" for question in questions))
    done = [f"{len(questions):,} questions -> {target}"]
    if len(questions) != OFFICIAL_QUESTIONS:
        done.append(
            f"the official dev set has {OFFICIAL_QUESTIONS:,} questions: scores over these are not comparable"
        )
    if not all(question["supporting"] for question in questions):
        done.append("without supporting facts: the share of supporting pages opened will not be known")
    if pages:
        done += _import_contexts(source, rows, pages, store, progress)
    elif not store.is_file():
        done.append("no pages in this file: import the abstracts or pages of your own as well")
    return done


def _read_question(row: Any, position: int, source: Path) -> dict[str, Any]:
    """Return the stored fields of a question. `_id`, `level` and `supporting_facts` are missing in the simplified
    file."""
    try:
        question, answer, kind = row["question"], row["answer"], row["type"]
        facts = row.get("supporting_facts", ())
        if not all(isinstance(fact, list) for fact in facts):
            raise TypeError("a supporting fact is a title and a number")
        supporting = [title for title, _ in facts]
        name = row.get("_id", f"{position:04d}")
        if not all(isinstance(text, str) for text in (question, answer, kind, name, *supporting)):
            raise TypeError("text expected")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ImportRefusedError(
            f"{source}: entry {position} is no question of HotpotQA ({error!r}); name one of {ACCEPTED}"
        ) from error
    return {
        "id": name,
        "question": question,
        "answer": answer,
        "type": kind,
        "supporting": list(dict.fromkeys(supporting)),
    }


def _read_contexts(source: Path, rows: list[Any]) -> list[Page]:
    """Return the paragraphs of all questions as pages. A title that several questions contain gives one page."""
    pages: dict[str, Page] = {}
    for position, row in enumerate(rows):
        try:
            for title, sentences in row.get("context", ()):
                if not (
                    isinstance(title, str)
                    and isinstance(sentences, list)
                    and all(isinstance(sentence, str) for sentence in sentences)
                ):
                    raise TypeError("text expected")
                pages.setdefault(title, Page(title, tuple(sentences)))
        except (TypeError, ValueError) as error:
            raise ImportRefusedError(
                f"{source}: the context of entry {position} is no list of titles with sentences ({error!r})"
            ) from error
    return list(pages.values())


def _import_contexts(
    source: Path, rows: list[Any], pages: list[Page], store: Path, progress: ImportProgress
) -> list[str]:
    if (other := _read_origin(store)) not in (None, "paragraphs"):
        return [f"{store} holds {other}: it is kept, and the paragraphs of this file are left out (to use "
                "them, remove it and import again)"]  # fmt: skip
    supporting_titles = {title for row in rows for title, _ in row.get("supporting_facts", ())}
    done = _write_store(source, store, progress, "paragraphs", lambda _: [_Batch(1, pages, [], 0, None)])
    if missing := len(supporting_titles - {page.title for page in pages}):
        done.append(
            f"{missing:,} of {len(supporting_titles):,} supporting pages are not among the paragraphs: this is not the "
            "distractor file"
        )
    return done


# --- pages -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Batch:
    """Pages that are written in one database transaction."""

    done: int
    """Number of files of the tar, or lines, that are stored once this batch is."""
    pages: Sequence[Page]
    redirects: Sequence[tuple[str, str]]
    position: int
    """Bytes of the source read so far, for the progress bar."""
    size: int | None


def _import_pages(source: Path, data: Path, progress: ImportProgress, kind: str, read: Any) -> list[str]:
    _, store = data_files(data)
    return _write_store(source, store, progress, kind, lambda done: read(source, done))


def _write_store(source: Path, store: Path, progress: ImportProgress, kind: str, batches: Any) -> list[str]:
    """Write the page store; continue an interrupted import of the same file."""
    origin = f"{kind} of {source.name}"
    try:
        with closing(StoreWriter(store, f"{origin}, {_identify(source)}")) as writer:
            done = [f"going on after {writer.done:,} parts that are in already"] if writer.done else []
            for batch in batches(writer.done):
                if batch.done <= writer.done:
                    continue
                writer.add(batch.pages)
                writer.add_redirects(batch.redirects)
                writer.commit(batch.done)
                progress("reading pages", batch.position, batch.size)
            if not len(writer):
                writer.discard()
                raise ImportRefusedError(f"{source} holds no page with a usable title")
            sha256 = writer.finish(progress, origin=origin, kind=kind)
            skipped = writer.skipped
    except ImportRefusedError:
        raise
    except sqlite3.Error as error:
        raise ImportRefusedError(
            f"cannot write {store} ({error}); what is in is kept, run it again"
        ) from error
    except _DAMAGE as error:
        raise ImportRefusedError(f"{source} is damaged or cut off ({error}); get it again") from error
    count = len(PageStore(store))
    done.append(f"{count:,} pages -> {store} (SHA-256 of the corpus {sha256[:16]}...)")
    if skipped:
        done.append(f"{skipped:,} entries without a usable title were left out")
    return done


def _identify(source: Path) -> str:
    """Return what identifies the source: its size and the hash of its beginning."""
    with source.open("rb") as file:
        return f"{source.stat().st_size} bytes, {hashlib.sha256(file.read(2**20)).hexdigest()}"


def _read_origin(store: Path) -> str | None:
    if not store.is_file():
        return None
    try:
        opened = PageStore(store)
    except PageStoreError:
        return None
    kind = opened.meta.get("kind")
    opened.close()
    return kind


def _read_abstracts(source: Path, done: int) -> Iterator[_Batch]:
    """Yield batches of the official tar (JSON lines, compressed with bzip2) after its first `done` files."""
    size = source.stat().st_size
    pages: list[Page] = []
    number = 0
    ending = b""

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal ending
            ending = bytes(buf)
            return super().frombuf(buf, encoding, errors)

    with (
        source.open("rb") as raw,
        tarfile.open(fileobj=_open_unpacked(raw), mode="r|", tarinfo=Header) as tar,
    ):
        while (member := tar.next()) is not None:
            tar.members = []  # type: ignore[attr-defined]
            if not member.isreg():
                continue
            number += 1
            if number <= done:
                continue
            if member.size > LARGEST_MEMBER:
                raise ImportRefusedError(f"{source} is refused: one of its files is over 64 MiB")
            file = tar.extractfile(member)
            content = file.read() if file is not None else b""
            where = f"{source}, file {number}"
            pages += [page for page, _ in _read_lines(_unpack(content, where).splitlines(), where)]
            if number % _MEMBERS_A_COMMIT == 0:
                yield _Batch(number, pages, [], raw.tell(), size)
                pages = []
    # tarfile accepts an archive that was cut off between two files or in a header.
    if ending != bytes(tarfile.BLOCKSIZE):
        raise ImportRefusedError(f"{source} is cut off: it does not end as a tar does; get it again")
    if number == 0:
        raise ImportRefusedError(f"{source} holds no file")
    yield _Batch(number, pages, [], size, size)


def _open_unpacked(raw: IO[bytes]) -> IO[bytes]:
    """Return the decompressed file, or the file itself if it is not compressed."""
    magic = raw.read(3)
    raw.seek(0)
    if magic == b"BZh":
        return bz2.BZ2File(raw)
    return gzip.GzipFile(fileobj=raw) if magic[:2] == b"\x1f\x8b" else raw  # type: ignore[return-value]


def _unpack(content: bytes, where: str) -> bytes:
    if not content.startswith(b"BZh"):
        return content
    unpacker = bz2.BZ2Decompressor()
    text = unpacker.decompress(content, LARGEST_UNPACKED)
    if not unpacker.eof:
        raise ImportRefusedError(f"{where} is cut off, or unpacks to far more than its size")
    return text


def _read_own_pages(source: Path, done: int) -> Iterator[_Batch]:
    """Yield batches of JSON lines, plain or compressed with gzip or bzip2."""
    size = source.stat().st_size
    with source.open("rb") as raw:
        file = _open_unpacked(raw)
        pages: list[Page] = []
        redirects: list[tuple[str, str]] = []
        number = 0
        while line := file.readline(LARGEST_LINE):
            number += 1
            if len(line) >= LARGEST_LINE:
                raise ImportRefusedError(f"{source}, line {number} is over 32 MiB")
            if number <= done:
                continue
            for page, also in _read_lines([line], f"{source}, line {number}"):
                pages.append(page)
                redirects += [(title, page.title) for title in also]
            if number % _LINES_A_COMMIT == 0:
                yield _Batch(number, pages, redirects, raw.tell(), size)
                pages, redirects = [], []
    yield _Batch(number, pages, redirects, size, size)


def _read_lines(lines: Iterable[bytes], where: str) -> Iterator[tuple[Page, list[str]]]:
    """Yield the page of each line that is not empty, and the titles that redirect to it."""
    for line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            title, also = row["title"], row.get("redirects", [])
            sentences = _read_sentences(row["sentences"] if "sentences" in row else row["text"])
            if not isinstance(title, str) or not all(isinstance(other, str) for other in also):
                raise TypeError("a title is no text")
            if not isinstance(also, list):
                raise TypeError("redirects are a list of titles")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ImportRefusedError(
                f"{where} is no page ({error!r}); a page is one line with a title and sentences or a text"
            ) from error
        yield Page(title, tuple(sentences)), also


def _read_sentences(text: Any) -> list[str]:
    """Return the sentences of a list of sentences, a list of paragraphs, or one string, which is split after .
    ! and ?"""
    if isinstance(text, str):
        return split_sentences(text)
    if not isinstance(text, list):
        raise TypeError("the text is neither text nor a list")
    sentences: list[str] = []
    for part in text:
        if isinstance(part, list):
            sentences += [sentence for sentence in part if isinstance(sentence, str)]
        elif isinstance(part, str):
            sentences.append(part)
        else:
            raise TypeError("a sentence is no text")
    return [sentence for sentence in sentences if sentence.strip()]
