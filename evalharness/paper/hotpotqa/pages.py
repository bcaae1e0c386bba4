"""The page store: all pages of a corpus in one SQLite file, which each worker opens read-only.

The key of a page is the hash of its title in lower case. One integer index therefore finds exact titles, titles in
other capitals, and redirects. Similar titles come from a full-text index (SQLite's FTS5), ranked by bm25. A search text
of the model reaches FTS5 only as quoted words, so it cannot contain FTS5 operators.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

SIMILAR = 5
LONGEST_TITLE = 1_000
"""Largest number of characters in a title. Wikipedia's own limit is 255 bytes."""

_WORD = re.compile(r"[^\W_]+")
_MOST_WORDS = 16
_MOST_MATCHES = 3_000
"""Largest number of titles that one search ranks. The search uses the rarest words first and stops before the words
match more titles: to rank all titles with `of` among five million takes half a second."""
_CACHE_KIB = 16_384
"""Size of SQLite's page cache in one worker."""


class PageStoreError(Exception):
    """The file is no page store, or it is damaged."""


@dataclass(frozen=True)
class Page:
    title: str
    sentences: tuple[str, ...]


class Pages(Protocol):
    """A searchable corpus: a `PageStore`, or the live Wikipedia."""

    def find(self, title: str) -> Page | None: ...
    def similar(self, text: str) -> list[str]: ...


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)")


def split_sentences(text: str) -> list[str]:
    """Split a text after . ! and ?"""
    return [sentence for sentence in _SENTENCE_END.split(text.strip()) if sentence]


def clean(text: str) -> str:
    """Replace unpaired surrogates by question marks: JSON can contain them, but SQLite refuses them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def hash_title(title: str) -> int:
    """Return a signed 64-bit integer that is equal for titles that differ in capitals only."""
    digest = hashlib.blake2b(title.casefold().encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def split_words(text: str) -> list[str]:
    """Split a text into the words that the title index uses: letters and digits, in lower case, without accents."""
    plain = text.casefold()
    if not plain.isascii():
        plain = "".join(c for c in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(c))
    return _WORD.findall(plain)


def hash_corpus(pages: Iterable[Page], redirects: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 over all pages and all redirects (title, target), in order."""
    digest = hashlib.sha256()
    for page in pages:
        digest.update(json.dumps([page.title, *page.sentences]).encode() + b"\n")
    for redirect in redirects:
        digest.update(json.dumps(redirect).encode() + b"\n")
    return digest.hexdigest()


class PageStore:
    """A finished page store. The constructor raises PageStoreError if the file at `path` is not one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        try:
            self._connection = sqlite3.connect(uri, uri=True)
            self._connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self.meta: dict[str, str] = dict(self._connection.execute("SELECT key, value FROM meta"))
        except sqlite3.Error as error:
            raise PageStoreError(f"{path} is no page store ({error})") from error
        if "sha256" not in self.meta:
            raise PageStoreError(f"{path} is an unfinished page store")

    @property
    def sha256(self) -> str:
        """The hash of the corpus, computed when the store was made."""
        return self.meta["sha256"]

    def close(self) -> None:
        self._connection.close()

    def __len__(self) -> int:
        return int(self.meta["pages"])

    def find(self, title: str) -> Page | None:
        """Return the page of the title: an exact match, else one that differs in capitals, else through a redirect."""
        title = clean(title.strip())
        if not 0 < len(title) <= LONGEST_TITLE:
            return None
        page = self._find_titled(title)
        if page is None and (target := self._find_target(title)) is not None:
            page = self._find_titled(target)
        return page

    def similar(self, text: str, most: int = SIMILAR) -> list[str]:
        """Return titles that share words with `text`, best first by bm25."""
        words = list(dict.fromkeys(split_words(clean(text[:LONGEST_TITLE]))))[:_MOST_WORDS]
        marks = ",".join("?" * len(words))
        counts = self._rows(f"SELECT titles, term FROM terms WHERE term IN ({marks})", words)
        counts.sort()
        chosen: list[str] = []
        matches = 0
        for titles, term in counts:
            if chosen and matches + titles > _MOST_MATCHES:
                break
            chosen.append(term)
            matches += titles
        if not chosen:
            return []
        if matches > _MOST_MATCHES:  # all words are very common: take titles with all of them, unranked
            ids = self._find_matching([term for _, term in counts], " AND ", "rowid", most)
            # no title has all words: take titles with the rarest word
            ids = ids or self._find_matching(chosen, " AND ", "rowid", most)
        else:
            ids = self._find_matching(chosen, " OR ", "bm25(titles), rowid", most)
        return [self._rows("SELECT title FROM pages WHERE id = ?", (number,))[0][0] for number in ids]

    def _find_matching(self, terms: list[str], glue: str, order: str, most: int) -> list[int]:
        """Return the row numbers of titles that contain the terms."""
        query = glue.join(f'"{term}"' for term in terms)
        sql = f"SELECT rowid FROM titles WHERE titles MATCH ? ORDER BY {order} LIMIT ?"
        return [row[0] for row in self._rows(sql, (query, most))]

    def _find_titled(self, title: str) -> Page | None:
        rows = self._rows(
            "SELECT title, sentences FROM pages WHERE key = ? ORDER BY title", (hash_title(title),)
        )
        exact = [row for row in rows if row[0] == title]
        folded = title.casefold()
        for stored_title, sentences in exact or [row for row in rows if row[0].casefold() == folded]:
            return Page(stored_title, tuple(json.loads(sentences)))
        return None

    def _find_target(self, title: str) -> str | None:
        rows = self._rows(
            "SELECT title, target FROM redirects WHERE key = ? ORDER BY title, id", (hash_title(title),)
        )
        folded = title.casefold()
        same = [row for row in rows if row[0] == title] or [
            row for row in rows if row[0].casefold() == folded
        ]
        return str(same[0][1]) if same else None

    def _rows(self, sql: str, values: Iterable[object]) -> list[Any]:
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        except sqlite3.DatabaseError as error:
            raise PageStoreError(f"{self.path} is damaged ({error})") from error


def open_store(path: Path) -> PageStore:
    """Return the page store of a file. All environments of a process share it; it is opened again if the file was
    replaced."""
    try:
        status = path.stat()
    except OSError as error:
        raise PageStoreError(f"no page store at {path} ({error.strerror})") from None
    return _open_once(path, status.st_ino, status.st_mtime_ns)


@lru_cache(maxsize=8)
def _open_once(path: Path, inode: int, changed: int) -> PageStore:
    return PageStore(path)
