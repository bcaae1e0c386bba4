"""The live Wikipedia, played by a recorded server on loopback: what is asked, recorded, and never asked again."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.paper.hotpotqa.actions import place
from evalharness.paper.hotpotqa.adapter import HotpotQAEnv
from evalharness.paper.hotpotqa.live import VARIABLE, LivePages
from evalharness.paper.hotpotqa.pages import PageStoreError
from evalharness.paper.hotpotqa.tasks import LIVE, load_tasks, record_file
from evalharness.records.store import read_manifest

ARTICLES = {
    "Book 1": "Book 1 was written by Writer 1. It is long.\n\n== Reception ==\nNobody liked it.\nWriter 1 did.",
    "Writer 1": "Writer 1 wrote it. And no more.",
}


class Wikipedia(ThreadingHTTPServer):
    """Answers as MediaWiki's api.php does, from `ARTICLES`; `broken`: sends no JSON; `cut`: ends too soon."""

    broken = cut = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/w/api.php"


class _Handler(BaseHTTPRequestHandler):
    server: Wikipedia

    def do_GET(self) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.asked.append(asked)
        if "titles" in asked:
            title = asked["titles"][:1].upper() + asked["titles"][1:]
            page = (
                {"title": title, "extract": ARTICLES[title]}
                if title in ARTICLES
                else {"title": title, "missing": ""}
            )
            query: dict[str, object] = {"pages": {"1": page}}
        else:
            query = {"search": [{"title": title} for title in ARTICLES]}
        body = b"<html>busy" if self.server.broken else json.dumps({"query": query}).encode()
        self.send_response(200)
        if self.server.cut:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"ffff\r\n" + body
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def wikipedia(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wikipedia]:
    server = Wikipedia()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv(VARIABLE, server.address)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_article_is_read_as_sentences_and_asked_for_once(tmp_path: Path, wikipedia: Wikipedia) -> None:
    pages = LivePages(tmp_path / "record.sqlite")
    page = pages.find("book 1")
    assert page is not None
    assert page.title == "Book 1"
    assert page.sentences == (
        "Book 1 was written by Writer 1.", "It is long.", "Nobody liked it.", "Writer 1 did."
    )  # fmt: skip
    assert pages.find("Nobody") is None
    assert pages.similar("a book") == ["Book 1", "Writer 1"]
    asked = len(wikipedia.asked)
    assert asked == 3
    again = LivePages(tmp_path / "record.sqlite")
    assert (again.find("book 1"), again.find("Nobody"), again.similar("a book")) == (
        page, None, ["Book 1", "Writer 1"]
    )  # fmt: skip
    assert len(wikipedia.asked) == asked


def test_what_is_recorded_needs_no_network_and_what_is_not_is_no_fault_of_the_model(
    tmp_path: Path, wikipedia: Wikipedia, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = LivePages(tmp_path / "record.sqlite")
    pages.find("Book 1")
    monkeypatch.setenv(VARIABLE, "recorded")
    assert pages.find("Book 1") is not None
    with pytest.raises(PageStoreError, match="recorded"):
        pages.find("Writer 1")


def test_an_answer_that_is_none_is_tried_again_and_never_recorded(
    tmp_path: Path, wikipedia: Wikipedia
) -> None:
    wikipedia.broken = True
    pages = LivePages(tmp_path / "record.sqlite")
    with pytest.raises(PageStoreError, match="answer"):
        pages.find("Book 1")
    assert len(wikipedia.asked) == 2
    wikipedia.broken = False
    assert pages.find("Book 1") is not None


def test_an_answer_that_was_cut_off_is_tried_again(tmp_path: Path, wikipedia: Wikipedia) -> None:
    wikipedia.cut = True
    with pytest.raises(PageStoreError, match="answer"):
        LivePages(tmp_path / "record.sqlite").find("Book 1")
    assert len(wikipedia.asked) == 2


def test_a_record_whose_answers_are_none_is_said(tmp_path: Path, wikipedia: Wikipedia) -> None:
    pages = LivePages(tmp_path / "record.sqlite")
    pages.find("Book 1")
    for answer in ("<html>", "[]"):
        with closing(sqlite3.connect(pages.record)) as record:
            record.execute("UPDATE answers SET answer = ?", (answer,))
            record.commit()
        with pytest.raises(PageStoreError, match="read"):
            pages.find("Book 1")


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/x", "nowhere"])
def test_only_web_addresses_are_asked(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, address)
    with pytest.raises(PageStoreError, match="address"):
        LivePages(tmp_path / "record.sqlite").find("Book 1")


def test_a_run_on_the_live_pages_is_a_suite_of_its_own_and_repeats_from_its_record(
    data: Path, tmp_path: Path, wikipedia: Wikipedia, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle finds the pages that the server has; the second time there is no server."""
    for path in (data / "hotpotqa").glob("pages.sqlite*"):
        path.unlink()  # the questions are enough
    command = [
        "run",
        "--model",
        "oracle",
        "--suite",
        LIVE,
        "--questions",
        "all",
        "--limit",
        "2",
        "--data",
        str(data),
    ]
    assert main([*command, "-o", str(tmp_path / "a")]) == 0
    manifest = read_manifest(tmp_path / "a")
    assert (manifest.suite, manifest.provenance["hotpotqa"]["address"]) == (LIVE, wikipedia.address)
    asked = len(wikipedia.asked)
    assert asked > 0
    assert record_file(data).is_file()
    monkeypatch.setenv(VARIABLE, "recorded")
    assert main([*command, "-o", str(tmp_path / "b")]) == 0
    assert len(wikipedia.asked) == asked
    turns = [
        [turn["observation"] for turn in json.loads(line)["turns"]]
        for name in "ab"
        for line in sorted((tmp_path / name / "episodes.jsonl").read_text().splitlines())
    ]
    assert turns[: len(turns) // 2] == turns[len(turns) // 2 :]


def test_an_episode_searches_reads_and_looks_up_as_on_a_stored_page(data: Path, wikipedia: Wikipedia) -> None:
    environment = HotpotQAEnv(data=data)
    environment.reset(options={"task": load_tasks(LIVE, data, 0)[1]})
    observation, _, _, _, info = environment.step("Search[book 1]")
    assert observation.startswith("Book 1 was written by Writer 1. It is long.")
    assert info["valid"]
    assert environment.step("lookup[writer]")[0] == "(Result 1 / 2) Book 1 was written by Writer 1."
    assert environment.step("search[Nobody]")[0] == "Could not find Nobody. Similar: ['Book 1', 'Writer 1']."


@pytest.mark.parametrize("action", ["search[Book 1]", "Search[Book 1]", " SEARCH[Book 1]. "])
def test_a_search_is_a_place_in_any_capitals(action: str) -> None:
    assert place(action, "Book 1 was written.") == "Book 1"
    assert place(action, "Could not find Book 1. Similar: [].") is None
    assert specs()["hotpotqa"].place is place
