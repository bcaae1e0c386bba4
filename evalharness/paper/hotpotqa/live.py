"""Use the live Wikipedia as a page store, and record each answer so that a run can be repeated.

A recorded answer is never requested again, so replaying a run needs no network. The environment variable
`EVALHARNESS_WIKIPEDIA` is the `api.php` of another MediaWiki, or `recorded` for no requests at all. With `recorded`, a
missing page is an environment failure; it is not counted against the model.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from evalharness.base.reading import parse_json
from evalharness.base.version import __version__
from evalharness.paper.hotpotqa.pages import (
    LONGEST_TITLE,
    SIMILAR,
    Page,
    PageStoreError,
    clean,
    split_sentences,
)

VARIABLE = "EVALHARNESS_WIKIPEDIA"
WIKIPEDIA = "https://en.wikipedia.org/w/api.php"
RECORDED_ONLY = "recorded"
_AGENT = f"evalharness/{__version__}"
_TIMEOUT = 8.0
"""Timeout of a request in seconds. Two tries of a request stay below the 20 s limit of an environment step."""
_TRIES = 2
_LARGEST = 16 << 20
"""Largest answer in bytes. Wikipedia's longest articles have about one million characters."""
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS answers (query TEXT PRIMARY KEY, answer TEXT NOT NULL, asked REAL NOT NULL)"
)


def find_address() -> str:
    """Return the address of the API, or `recorded`."""
    return os.environ.get(VARIABLE) or WIKIPEDIA


class LivePages:
    """The live Wikipedia as a page store. `record` is the file of recorded answers; several processes may write to
    it."""

    def __init__(self, record: Path) -> None:
        self.record = record

    def find(self, title: str) -> Page | None:
        """Return the page of the title, following redirects. Raises PageStoreError if the server does not answer."""
        title = clean(title.strip())
        if not 0 < len(title) <= LONGEST_TITLE or "|" in title:  # `|` separates the titles in one request
            return None
        asked = {"prop": "extracts", "explaintext": "1", "redirects": "1", "titles": title}
        pages = self._ask(asked).get("pages")
        for page in pages.values() if isinstance(pages, dict) else ():
            text = page.get("extract") if isinstance(page, dict) else None
            if isinstance(text, str) and isinstance(page.get("title"), str):
                lines = (line.strip() for line in text.split("\n"))
                text_lines = [line for line in lines if line and not line.startswith("==")]
                return Page(page["title"], tuple(s for line in text_lines for s in split_sentences(line)))
        return None

    def similar(self, text: str, most: int = SIMILAR) -> list[str]:
        """Return titles of Wikipedia's search, best first."""
        words = clean(text[:LONGEST_TITLE]).strip()
        if not words:
            return []
        hits = self._ask({"list": "search", "srsearch": words[:300], "srlimit": str(SIMILAR)}).get("search")
        titles = (hit.get("title") for hit in hits if isinstance(hit, dict)) if isinstance(hits, list) else ()
        return [title for title in titles if isinstance(title, str)][:most]

    def _ask(self, question: Mapping[str, str]) -> dict[str, Any]:
        """Return the field `query` of Wikipedia's recorded answer. If the request is not recorded, send it first."""
        query = urlencode({"action": "query", "format": "json", **question})
        try:
            with closing(self._open_record()) as record:
                row = record.execute("SELECT answer FROM answers WHERE query = ?", (query,)).fetchone()
                if row is None:
                    answer = _fetch(query)
                    record.execute(
                        "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", (query, answer, time.time())
                    )
                    # Read the answer back: if another process recorded one first, all processes must use that one.
                    row = record.execute("SELECT answer FROM answers WHERE query = ?", (query,)).fetchone()
            result = parse_json(row[0]).get("query")
        except (sqlite3.Error, OSError, ValueError, TypeError, AttributeError) as error:
            raise PageStoreError(f"{self.record} cannot be read or written ({error})") from error
        return result if isinstance(result, dict) else {}

    def _open_record(self) -> sqlite3.Connection:
        self.record.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.record, timeout=_TIMEOUT, isolation_level=None)
        connection.execute(_SCHEMA)
        return connection


def _fetch(query: str) -> str:
    """Request an answer. Raises PageStoreError if there is no usable answer."""
    where = find_address()
    if where == RECORDED_ONLY:
        raise PageStoreError(f"{VARIABLE}={RECORDED_ONLY}, and this page is not recorded: {query}")
    if urlsplit(where).scheme not in ("http", "https"):
        raise PageStoreError(f"{VARIABLE}={where}: give the address of an api.php, or {RECORDED_ONLY}")
    problem = ""
    for _ in range(_TRIES):
        try:
            request = Request(f"{where}?{query}", headers={"User-Agent": _AGENT})
            with urlopen(request, timeout=_TIMEOUT) as response:
                raw = response.read(_LARGEST + 1)
            answer = parse_json(raw)
            if len(raw) > _LARGEST or not isinstance(answer, dict) or "error" in answer:
                raise ValueError("no answer to the question")
            return json.dumps(answer)
        except (OSError, HTTPException, ValueError) as error:
            problem = str(error)
    raise PageStoreError(f"{where} did not answer ({problem})")


def describe_live(record: Path) -> dict[str, Any]:
    """Return the description of the pages for a run's manifest."""
    return {"source": "live Wikipedia, answers recorded", "address": find_address(), "record": record.name}
