"""Downloads: whatever the network does, the file ends up whole and checked, or a clear line says why not."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.data import check
from evalharness.data.fetch import STALLED_TRIES, fetch, fetch_published
from evalharness.data.table import Download, PublishedFamily, Tasks

CONTENT = b"".join(hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(20_000))
"""640 kB that do not compress and are different everywhere."""


class Publisher(ThreadingHTTPServer):
    """A file server whose faults are set by the test."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.etag = '"one"'
        self.ranges = True
        self.cut_after: list[int] = []
        """For each coming answer, after how many bytes the connection is closed; whole ones afterwards."""
        self.statuses: list[int] = []
        """Statuses of the coming answers instead of the file."""
        self.length = ""
        """What is said of an answer's length instead of the truth."""
        self.requests: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Publisher

    def do_GET(self) -> None:
        self.server.requests.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.statuses:
            self.send_error(self.server.statuses.pop(0))
            return
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        wanted = self.headers.get("Range") if self.server.ranges else None
        if self.headers.get("If-Range", self.server.etag) != self.server.etag:
            wanted = None
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if wanted and start >= len(content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.end_headers()
            return
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("ETag", self.server.etag)
        self.send_header("Content-Length", self.server.length or str(len(content) - start))
        self.end_headers()
        body = content[start:]
        self.wfile.write(body[: self.server.cut_after.pop(0)] if self.server.cut_after else body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with Publisher() as server:
        server.files["/file.bin"] = CONTENT
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def get(publisher: Publisher, target: Path, *, sha256: str | None = None, path: str = "/file.bin") -> None:
    download = Download(url=publisher.url + path, save_as="file.bin", sha256=sha256)
    fetch(download, target, progress=lambda *_: None, retry_wait=0)


def test_a_download_arrives_whole_and_reports_its_progress(publisher: Publisher, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    download = Download(
        url=publisher.url + "/file.bin", save_as="file.bin", sha256=hashlib.sha256(CONTENT).hexdigest()
    )
    fetch(download, tmp_path / "file.bin", progress=lambda _, done, total: seen.append((done, total)))
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file.bin"]
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_length_that_is_no_number_is_passed_over(publisher: Publisher, tmp_path: Path) -> None:
    publisher.length = "much"
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_cut_transfer_goes_on_where_it_stopped(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cut_after = [100_000, 1, 200_000]
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert [request.get("range") for request in publisher.requests] == [
        None,
        "bytes=100000-",
        "bytes=100001-",
        "bytes=300001-",
    ]


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cut_after = [100_000] + [0] * STALLED_TRIES
    with pytest.raises(UserError, match="100,000 bytes"):
        get(publisher, tmp_path / "file.bin")
    assert not (tmp_path / "file.bin").exists()
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert publisher.requests[-1]["range"] == "bytes=100000-"


def test_a_server_without_ranges_is_asked_for_the_whole_again(publisher: Publisher, tmp_path: Path) -> None:
    publisher.ranges = False
    publisher.cut_after = [100_000]
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_not_glued_together(publisher: Publisher, tmp_path: Path) -> None:
    publisher.cut_after = [100_000] + [0] * STALLED_TRIES
    with pytest.raises(UserError):
        get(publisher, tmp_path / "file.bin")
    publisher.etag = '"two"'
    publisher.files["/file.bin"] = CONTENT[::-1]
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT[::-1]


def test_a_part_that_is_already_whole_is_enough(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_part_longer_than_the_file_starts_over(publisher: Publisher, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(CONTENT + b"more")
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_wrong_hash_is_refused_and_nothing_is_deleted(publisher: Publisher, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match=r"file\.bin\.part"):
            get(publisher, tmp_path / "file.bin", sha256="0" * 64)
        assert not (tmp_path / "file.bin").exists()
        assert (tmp_path / "file.bin.part").read_bytes() == CONTENT


def test_busy_servers_are_asked_again(publisher: Publisher, tmp_path: Path) -> None:
    publisher.statuses = [503, 429, 500]
    get(publisher, tmp_path / "file.bin")
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_not_retried(publisher: Publisher, tmp_path: Path, status: int) -> None:
    publisher.statuses = [status]
    with pytest.raises(UserError, match=f"HTTP {status}.*evalharness data import FILE"):
        get(publisher, tmp_path / "file.bin")
    assert len(publisher.requests) == 1


def test_offline_says_so_in_one_line(publisher: Publisher, tmp_path: Path) -> None:
    publisher.server_close()
    publisher.shutdown()
    with pytest.raises(
        UserError, match=r"cannot download .*Connection refused.*evalharness data import FILE"
    ):
        get(publisher, tmp_path / "file.bin")


def test_archives_and_single_files_complete_a_family_and_are_removed(
    publisher: Publisher, tmp_path: Path
) -> None:
    labels, game = b'{"id": 0}\n', b"game"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("suite-main/games/toy.z5")
        member.size = len(game)
        tar.addfile(member, io.BytesIO(game))
    publisher.files = {"/labels": labels, "/suite.tar.gz": packed.getvalue()}
    toy = PublishedFamily(
        family="toyworld",
        folder="toy",
        tasks=Tasks(count=1, any_of=["labels.jsonl"]),
        also_found_as={"roms/": "games/"},
        downloads=(
            Download(url=publisher.url + "/labels", save_as="toy/labels.jsonl"),
            Download(url=publisher.url + "/suite.tar.gz", save_as="suite.tar.gz"),
        ),
        literals={},
        files={
            "labels.jsonl": hashlib.sha256(labels).hexdigest(),
            "roms/toy.z5": hashlib.sha256(game).hexdigest(),
        },
        source=Path("unused"),
    )
    results = fetch_published({"toyworld": toy}, tmp_path / "data", progress=lambda *_: None, retry_wait=0)
    assert results["toyworld"].imported == 2
    assert check(toy, tmp_path / "data").ok
    assert not [path for path in (tmp_path / "data" / "downloads").rglob("*") if path.is_file()]
    publisher.files = {}
    again = fetch_published({"toyworld": toy}, tmp_path / "data", progress=lambda *_: None, retry_wait=0)
    assert again["toyworld"].check.ok  # complete: nothing is asked for


def test_the_command_flags_a_published_file_that_is_another_one(
    publisher: Publisher,
    clean_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publisher.files = {"/datasets/hkust-nlp/agentboard/resolve/main/data/babyai/test.jsonl": b'{"id": 0}\n'}
    monkeypatch.setenv("HF_ENDPOINT", publisher.url + "/")
    assert main(["data", "fetch", "babyai", "--json", "-"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["families"]["babyai"]["changed"] == ["test.jsonl"]


@pytest.mark.slow
@pytest.mark.data
def test_the_command_fetches_the_real_label_files(
    publisher: Publisher,
    published_data: Path,
    clean_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publisher.files = {
        f"/datasets/hkust-nlp/agentboard/resolve/main/data/{folder}/test.jsonl": (
            published_data / "agentboard" / folder / "test.jsonl"
        ).read_bytes()
        for folder in ("babyai", "scienceworld")
    }
    publisher.cut_after = [10_000]
    monkeypatch.setenv("HF_ENDPOINT", publisher.url)
    assert main(["data", "fetch", "babyai", "sciworld"]) == 0
    assert main(["data", "verify", "babyai", "sciworld"]) == 0
