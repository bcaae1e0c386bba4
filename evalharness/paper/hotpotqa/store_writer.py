"""Write a page store. The file has a temporary name until it is complete.

If the process is killed, committed pages are kept, and the next import of the same source continues after them.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from evalharness.envs.base import ImportProgress
from evalharness.paper.hotpotqa.pages import LONGEST_TITLE, Page, clean, hash_corpus, hash_title, split_words

SCHEMA = 1
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE pages (id INTEGER PRIMARY KEY, key INTEGER NOT NULL, title TEXT NOT NULL, sentences TEXT NOT NULL);
CREATE TABLE redirects (id INTEGER PRIMARY KEY, key INTEGER NOT NULL, title TEXT NOT NULL, target TEXT NOT NULL);
"""
_INDEX = """
CREATE INDEX pages_by_key ON pages (key);
CREATE INDEX redirects_by_key ON redirects (key);
"""
_BATCH = 10_000


class StoreWriter:
    """Writes a page store to `path` with the suffix `.part`, until `finish` renames the file.

    `source` identifies the source file. An unfinished store of another source is removed.
    """

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self.skipped = 0
        """Number of pages and redirects left out, because the title is empty or longer than 1,000 characters."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = self._open_unfinished(source) or self._open_new(source)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.part)
        # A killed process loses only uncommitted pages. A power failure may damage the file, which is then made again.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_size = -65536")
        return connection

    def _open_unfinished(self, source: str) -> sqlite3.Connection | None:
        if not self.part.exists():
            return None
        connection = None
        try:
            connection = self._open()
            meta = dict(connection.execute("SELECT key, value FROM meta"))
            if meta.get("source") == source and meta.get("schema") == str(SCHEMA) and "sha256" not in meta:
                return connection
        except sqlite3.DatabaseError:
            pass
        if connection is not None:
            connection.close()
        return None

    def _open_new(self, source: str) -> sqlite3.Connection:
        self._remove_part()
        connection = self._open()
        connection.executescript(_TABLES)
        connection.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("schema", str(SCHEMA)), ("source", source), ("done", "0")]
        )
        connection.commit()
        return connection

    def _remove_part(self) -> None:
        for ending in ("", "-wal", "-shm", "-journal"):
            self.part.with_name(self.part.name + ending).unlink(missing_ok=True)

    @property
    def done(self) -> int:
        """The number given to the last `commit`: how many files or lines of the source are stored."""
        return int(self._read_meta("done"))

    def __len__(self) -> int:
        """Return the number of stored pages; pages with the same title are counted separately."""
        (count,) = self._connection.execute("SELECT count(*) FROM pages").fetchone()
        return int(count)

    def add(self, pages: Iterable[Page]) -> None:
        """Store pages. Of several pages with one title, `finish` keeps the first."""
        rows = []
        for page in pages:
            title = clean(page.title.strip())
            if 0 < len(title) <= LONGEST_TITLE:
                sentences = [clean(sentence) for sentence in page.sentences]
                rows.append((hash_title(title), title, json.dumps(sentences, ensure_ascii=False)))
            else:
                self.skipped += 1
        self._connection.executemany("INSERT INTO pages (key, title, sentences) VALUES (?, ?, ?)", rows)

    def add_redirects(self, redirects: Iterable[tuple[str, str]]) -> None:
        """Store redirects of (title, title of the target page)."""
        cleaned = [(clean(title.strip()), clean(target.strip())) for title, target in redirects]
        good = [row for row in cleaned if all(0 < len(text) <= LONGEST_TITLE for text in row)]
        self.skipped += len(cleaned) - len(good)
        self._connection.executemany(
            "INSERT INTO redirects (key, title, target) VALUES (?, ?, ?)",
            [(hash_title(title), title, target) for title, target in good],
        )

    def commit(self, done: int) -> None:
        self._write_meta("done", str(done))
        self._connection.commit()

    def finish(self, stage: ImportProgress = lambda what, done, of: None, **facts: str) -> str:
        """Build the indexes, rename the file to `path`, and return the corpus's hash. `facts` are stored as
        metadata."""
        connection = self._connection
        connection.commit()
        for table in ("terms", "titles"):  # left from a call that was killed
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.executescript("DROP INDEX IF EXISTS pages_by_key; DROP INDEX IF EXISTS redirects_by_key;")
        stage("indexing titles", 0, None)
        connection.executescript(_INDEX)
        self._drop_repeated()
        (count,) = connection.execute("SELECT count(*) FROM pages").fetchone()
        self._index_words(stage, count)
        sha256 = hash_corpus(self._read_pages(stage, count), self._read_redirects())
        for key, value in {**facts, "pages": str(count), "sha256": sha256}.items():
            self._write_meta(key, value)
        connection.execute("DELETE FROM meta WHERE key = 'done'")
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        with self.part.open("rb+") as file:
            os.fsync(file.fileno())
        self.part.replace(self.path)
        return sha256

    def close(self) -> None:
        """Close the file. Committed pages are kept, so that a later import can continue."""
        self._connection.close()

    def discard(self) -> None:
        self._connection.close()
        self._remove_part()

    def _drop_repeated(self) -> None:
        self._connection.execute(
            "DELETE FROM pages WHERE key IN (SELECT key FROM pages GROUP BY key HAVING count(*) > 1)"
            " AND EXISTS (SELECT 1 FROM pages AS other WHERE other.key = pages.key"
            " AND other.title = pages.title AND other.id < pages.id)"
        )

    def _index_words(self, stage: ImportProgress, count: int) -> None:
        connection = self._connection
        connection.execute("CREATE VIRTUAL TABLE titles USING fts5(words, content='')")
        last, done = 0, 0
        while rows := connection.execute(
            "SELECT id, title FROM pages WHERE id > ? ORDER BY id LIMIT ?", (last, _BATCH)
        ).fetchall():
            connection.executemany(
                "INSERT INTO titles (rowid, words) VALUES (?, ?)",
                [(number, " ".join(split_words(title))) for number, title in rows],
            )
            last, done = rows[-1][0], done + len(rows)
            stage("indexing words", done, count)
        connection.execute("INSERT INTO titles (titles) VALUES ('optimize')")
        connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'titles', 'row')")
        connection.execute(
            "CREATE TABLE terms (term TEXT PRIMARY KEY, titles INTEGER NOT NULL) WITHOUT ROWID"
        )
        connection.execute("INSERT INTO terms SELECT term, doc FROM temp.vocabulary ORDER BY term")
        connection.execute("DROP TABLE temp.vocabulary")

    def _read_pages(self, stage: ImportProgress, count: int) -> Iterator[Page]:
        rows = self._connection.execute("SELECT title, sentences FROM pages ORDER BY id")
        for done, (title, sentences) in enumerate(rows, 1):
            if done % _BATCH == 0:
                stage("hashing", done, count)
            yield Page(title, tuple(json.loads(sentences)))

    def _read_redirects(self) -> Iterator[tuple[str, str]]:
        yield from self._connection.execute("SELECT title, target FROM redirects ORDER BY id")

    def _read_meta(self, key: str) -> str:
        (value,) = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(value)

    def _write_meta(self, key: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def write_small(path: Path, pages: Iterable[Page], redirects: Iterable[tuple[str, str]], source: str) -> str:
    """Write a small store in one call. Several processes may write to one `path`: each has its own temporary file."""
    own = path.with_name(f"{path.name}.{os.getpid()}")
    with closing(StoreWriter(own, source)) as writer:
        writer.add(pages)
        writer.add_redirects(redirects)
        sha256 = writer.finish()
    own.replace(path)
    return sha256
