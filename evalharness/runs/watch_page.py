"""The report of a run in progress, served on loopback. Reads what the run appends; writes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from evalharness.base.errors import UserError, system_errors
from evalharness.base.reading import lines_of, open_file
from evalharness.base.terminal import say
from evalharness.models.openenv.door import listening
from evalharness.records.episode import read_episode
from evalharness.records.store import EPISODES, LOCK, MANIFEST, EpisodeKey, read_manifest
from evalharness.results.run_labels import NamedRun, letter, run_labels
from evalharness.results.scored_run import ScoredRun, load_scored_run, of_family
from evalharness.results.summary import earlier_timing, summarize
from evalharness.results.viewer.bundle import (
    Chosen,
    Comparisons,
    RunRecords,
    TaskTable,
    comparisons,
    compressed,
    make_index,
    require_family,
    run_entry,
)
from evalharness.results.viewer.page import live_page
from evalharness.results.viewer.prompts import Prompts

HOST = "127.0.0.1"
SHARE_OF_TIME = 0.1
"""Of a core for scores computed anew: they are read from the whole run, and the run needs the machine."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Feed:
    """The episodes of one run folder as they are appended."""

    folder: Path
    records: RunRecords
    offset: int = 0
    lines: int = 0
    _read: set[EpisodeKey] = field(default_factory=set)

    def read(self) -> int:
        """Take in the whole lines that came since; how many."""
        path = self.folder / EPISODES
        if not path.exists():
            return 0
        found = 0
        with system_errors(f"{path} is not readable"):
            file = open_file(path)
        with file:
            file.seek(self.offset)
            for line in lines_of(file):
                if not line.endswith(b"\n"):
                    break  # being written
                try:
                    episode = read_episode(line)
                except ValueError as error:
                    raise UserError(
                        f"{path} is damaged at line {self.lines + 1} ({error}); restore it, or delete that line"
                    ) from None
                self.offset += len(line)
                self.lines += 1
                key = (episode.task_id, episode.sample)
                if key in self._read:
                    continue  # damage, which the summary reports when it is computed
                self._read.add(key)
                self.records.add(episode)
                found += 1
        return found


@dataclass
class Viewed:
    """The runs that are looked at, brought up to date when asked, and not too often."""

    folders: Sequence[Path]
    prompts: Prompts
    chosen: Chosen = field(default_factory=Chosen)
    tasks: TaskTable = field(default_factory=TaskTable)
    feeds: list[Feed] = field(default_factory=list)
    version: int = 0
    _index: bytes = b""
    _titles: dict[str, str] = field(default_factory=dict)
    _labels: list[str] = field(default_factory=list)
    _next: float = 0.0
    _written: list[int] = field(default_factory=list)

    def open(self) -> None:
        """Raises UserError when a folder holds no run, or when suites differ."""
        manifests = [read_manifest(folder) for folder in self.folders]
        seeds = {(m.suite, m.config.suite_seed) for m in manifests}
        if len(seeds) > 1:
            raise UserError("these runs are of different suites; look at each by itself")
        if self.chosen.family is not None:
            require_family(self.chosen.family, manifests)
        self._labels = run_labels(
            [NamedRun.of(folder, m) for folder, m in zip(self.folders, manifests, strict=True)]
        )
        for folder, manifest in zip(self.folders, manifests, strict=True):
            self._titles |= manifest.titles
            records = RunRecords(self.tasks, self.prompts, manifest, self.chosen)
            self.feeds.append(Feed(folder, records))
        self.refresh()

    @property
    def episodes(self) -> int:
        return sum(len(feed.records.rows) for feed in self.feeds)

    def refresh(self) -> None:
        """Read what is new, unless the last time is too short ago for what it cost."""
        # CPU time of this thread: on a busy machine the clock would make a cheap look seem dear.
        started = time.thread_time()
        if time.monotonic() < self._next:
            return
        sizes = [_size(folder / EPISODES) for folder in self.folders]
        if self._index and sizes == self._written:
            return
        for feed in self.feeds:
            feed.read()
        self._written = sizes
        self.version += 1
        entries = [
            run_entry(
                read_manifest(folder),
                summarize(folder, earlier_timing(folder), self.chosen.family),
                label,
                self.chosen.family,
                going_on=True,
            )
            for folder, label in zip(self.folders, self._labels, strict=True)
        ]
        records = [feed.records for feed in self.feeds]
        index = make_index(entries, records, self.tasks, self._titles, self._compared(), self.chosen)
        self._index = compressed({**index, "version": self.version})
        self._next = time.monotonic() + (time.thread_time() - started) / SHARE_OF_TIME

    def _compared(self) -> Comparisons:
        if len(self.folders) < 2:
            return [], []
        scored: dict[int, ScoredRun] = {}
        for number, (folder, feed) in enumerate(zip(self.folders, self.feeds, strict=True)):
            if not feed.records.rows:
                continue  # it has only just begun
            try:
                run = load_scored_run(folder)
                scored[number] = run if self.chosen.family is None else of_family(run, self.chosen.family)
            except UserError as error:
                return [], [f"{letter(number)}: {error}"]
        return comparisons(list(scored.values()), list(scored))

    def index(self) -> bytes:
        return self._index

    def block(self, run: int, position: int) -> bytes | None:
        blocks = self.feeds[run].records.blocks() if run < len(self.feeds) else []
        return blocks[position] if position < len(blocks) else None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _json(packed: bytes) -> web.Response:
    return web.Response(
        body=packed,
        content_type="application/json",
        headers={"Content-Encoding": "gzip", "Cache-Control": "no-store"},
    )


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answers only to the address that we printed: a page elsewhere whose name was made to point here gets nothing."""
    if request.host.rsplit(":", 1)[0] not in (HOST, "localhost"):
        raise web.HTTPForbidden(text="this server answers to 127.0.0.1 only")
    if request.headers.get("Origin", f"http://{request.host}") != f"http://{request.host}":
        raise web.HTTPForbidden(text="requests of other pages are not answered")
    try:
        response = await handler(request)
    except UserError as error:  # a run that was damaged while it is looked at
        raise web.HTTPInternalServerError(text=str(error)) from None
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    return response


def page_routes(html: str) -> list[web.RouteDef]:
    """The page, and no icon."""

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    async def nothing(request: web.Request) -> web.Response:
        return web.Response(status=204)

    return [web.get("/", page), web.get("/favicon.ico", nothing)]


def application(viewed: Viewed) -> web.Application:
    """`viewed` has been opened."""
    lock = asyncio.Lock()
    html = "".join(live_page(", ".join(folder.name for folder in viewed.folders)))

    async def refreshed() -> None:
        async with lock:
            await asyncio.to_thread(viewed.refresh)

    async def state(request: web.Request) -> web.Response:
        await refreshed()
        return web.json_response({"version": viewed.version, "episodes": viewed.episodes})

    async def index(request: web.Request) -> web.Response:
        await refreshed()
        return _json(viewed.index())

    async def prompts(request: web.Request) -> web.Response:
        return _json(compressed(viewed.prompts.listed))

    async def block(request: web.Request) -> web.Response:
        async with lock:
            packed = viewed.block(int(request.match_info["run"]), int(request.match_info["block"]))
        if packed is None:
            raise web.HTTPNotFound
        return _json(packed)

    app = web.Application(middlewares=[guard])
    app.add_routes(
        [
            *page_routes(html),
            web.get("/data/state", state),
            web.get("/data/index", index),
            web.get("/data/prompts", prompts),
            web.get(r"/data/block-{run:\d{1,4}}-{block:\d{1,6}}", block),
        ]
    )
    return app


async def serve_application(app: web.Application, port: int, ready: Callable[[str], Any]) -> None:
    """On loopback until cancelled; `ready` gets the address. Raises UserError when the port is taken."""
    async with listening(app, HOST, port, flags="--port") as url:
        ready(f"{url}/")
        await asyncio.Event().wait()


def wait_for_run(
    folder: Path, *, on_wait: Callable[[str], Any] = say, pause: Callable[[float], Any] = time.sleep
) -> None:
    """Until a run that has just begun has written what it is: its folder is there first, and a model's server can take
    minutes to start. A folder that is no run's is left to who reads it."""
    if (folder / MANIFEST).exists() or not ((folder / "server.log").exists() or (folder / LOCK).exists()):
        return
    on_wait(f"evalharness: {folder} has only just begun; waiting for its first line (Ctrl-C ends it)")
    while not (folder / MANIFEST).exists():
        pause(0.5)


def serve(
    folders: Sequence[Path],
    *,
    port: int = 0,
    prompts: Path | None = None,
    chosen: Chosen | None = None,
    ready: Callable[[str], Any] = lambda url: say(f"{url}   (Ctrl-C ends it)", stderr=False),
) -> None:
    """Until Ctrl-C. Raises UserError when a folder holds no run or the port is taken."""
    viewed = Viewed(folders, Prompts(prompts), chosen or Chosen())
    try:
        for folder in folders:
            wait_for_run(folder)
        viewed.open()
        asyncio.run(serve_application(application(viewed), port, ready))
    except KeyboardInterrupt:
        return
