"""HotpotQA: steps a second on the open corpus, and a page store of millions of paragraphs.

    python benchmarks/hotpotqa_store.py [--pages 5000000] [--files 300] [--folder DIR] [--json FILE]

Open corpus: the oracle's plans and random valid actions of all 300 tasks through the adapter, one process, CPU time.
Large store: paragraphs with titles of Zipf-distributed words are put into a store in a temporary folder by the
importer's own writer; then, in a fresh process, searches that hit, searches that miss (a title with a word exchanged,
a single word, common words alone) and lookups are played, and that process's memory is read.
Import: a tar in the layout of the official abstracts with `--files` files of 340 pages each is imported; the whole has
about 15,500 such files.
"""

from __future__ import annotations

import argparse
import bz2
import io
import itertools
import json
import random
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from evalharness.paper.hotpotqa import SPEC
from evalharness.paper.hotpotqa.actions import Reader
from evalharness.paper.hotpotqa.importer import import_file
from evalharness.paper.hotpotqa.pages import Page, PageStore
from evalharness.paper.hotpotqa.store_writer import StoreWriter

OFFICIAL_FILES, OFFICIAL_PAGES = 15_517, 5_233_329
STEPS = 4_000


def silent(what: str, done: int, of: int | None) -> None:
    pass


def open_corpus() -> dict[str, Any]:
    environment = SPEC.make(None)
    stream = random.Random(0)
    walks = []
    for task in SPEC.suites.load_tasks("open", None, 0):
        environment.reset(options={"task": task})
        walk = environment.oracle()[:-1]
        for _ in range(4):
            walk.append(stream.choice([a for a in environment.valid_actions() if not a.startswith("finish")]))
            environment.step(walk[-1])
        walks.append((task, walk))
    steps, spent = 0, 0.0
    for _ in range(10):
        for task, walk in walks:
            environment.reset(options={"task": task})
            began = time.process_time()
            for action in walk:
                environment.step(action)
            spent += time.process_time() - began
            steps += len(walk)
    return {"steps": steps, "steps_per_s": round(steps / spent)}


class Corpus:
    """Paragraphs without end, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.stream = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        draw = self.stream.choices
        self.words = ["of", "the", "list", "in", "river", "school", "station", "county"] + [
            "".join(draw(letters, k=self.stream.randint(4, 9))) for _ in range(400_000)
        ]
        self.weights = list(itertools.accumulate(1 / (rank + 1) ** 0.9 for rank in range(len(self.words))))
        self.sentences = [
            " ".join(draw(self.words, cum_weights=self.weights, k=18)).capitalize() + "."
            for _ in range(20_000)
        ]

    def title(self, number: int) -> str:
        """No title comes twice: a Wikipedia has none twice either."""
        words = self.stream.choices(self.words, cum_weights=self.weights, k=self.stream.randint(1, 4))
        return f"{' '.join(words).capitalize()} {number % 997} ({self.words[number // 997]})"

    def pages(self, count: int) -> Iterator[Page]:
        for number in range(count):
            yield Page(self.title(number), tuple(self.stream.choices(self.sentences, k=4)))


def build(path: Path, count: int) -> dict[str, Any]:
    began, cpu = time.perf_counter(), time.process_time()
    writer = StoreWriter(path, "benchmark")
    pages = Corpus(0).pages(count)
    for part in range(1, -(-count // 50_000) + 1):
        writer.add(itertools.islice(pages, 50_000))
        writer.commit(part)
        if part % 20 == 0:
            print(
                f"  {part * 50_000:,} pages after {time.perf_counter() - began:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    writer.finish()
    return {
        "pages": count,
        "build_s": round(time.perf_counter() - began),
        "build_cpu_s": round(time.process_time() - cpu),
        "bytes": path.stat().st_size,
    }


def steps_on(path: Path) -> dict[str, Any]:
    """In this process: milliseconds of each kind of step, and the memory that was needed."""
    corpus, stream = Corpus(0), random.Random(1)
    sample = {
        number: corpus.title(number)
        for number in range(60_000)
        if (corpus.stream.choices(corpus.sentences, k=4))
    }
    del corpus.sentences
    reader = Reader(PageStore(path))
    times: dict[str, list[float]] = {"hit": [], "miss": [], "one word": [], "common words": [], "lookup": []}
    titles = list(sample.values())
    kinds = [*["hit"] * 5, *["miss"] * 3, "one word", "common words", *["lookup"] * 3]
    for _ in range(STEPS):
        kind = stream.choice(kinds)
        title = stream.choice(titles)
        words = title.split()
        text = {
            "hit": title,
            "miss": " ".join([*words[:-1], stream.choice(corpus.words)]),
            "one word": stream.choice(corpus.words),
            "common words": "the list of the",
            "lookup": "the",
        }[kind]
        began = time.perf_counter()
        reader.lookup(text) if kind == "lookup" else reader.search(text)
        times[kind].append(1000 * (time.perf_counter() - began))
    every = sorted(itertools.chain(*times.values()))
    return {
        "median_ms": round(every[len(every) // 2], 3),
        "p99_ms": round(every[int(0.99 * len(every))], 2),
        "median_ms_of": {kind: round(sorted(values)[len(values) // 2], 3) for kind, values in times.items()},
    }


def memory_of(path: Path) -> dict[str, Any]:
    """Of a worker that has played 2,000 searches and nothing else."""
    code = (
        "import random, sys, psutil, pathlib\n"
        "import evalharness.play.workers.child\n"
        "from evalharness.paper.hotpotqa.actions import Reader\n"
        "from evalharness.paper.hotpotqa.pages import PageStore\n"
        "reader = Reader(PageStore(pathlib.Path(sys.argv[1])))\nstream = random.Random(2)\n"
        "sql = 'SELECT title FROM pages WHERE id % 2500 = 7 LIMIT 2000'\n"
        "titles = [row[0] for row in reader.store._rows(sql, ())]\n"
        "for title in titles:\n    reader.search(title)\n    reader.search(title[:-1] + ' x')\n"
        "print(psutil.Process().memory_info().rss)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout
    return {"worker_rss_mb": round(int(out) / 2**20)}


def imported(folder: Path, files: int) -> dict[str, Any]:
    corpus, source = Corpus(1), folder / "abstracts.tar.bz2"
    pages = corpus.pages(files * 340)
    with tarfile.open(source, "w:bz2", compresslevel=1) as tar:
        for number in range(files):
            lines = [
                json.dumps({"id": str(i), "url": "https://en.wikipedia.org/wiki?curid=12", "title": page.title,
                            "text": page.sentences, "charoffset": [[[0, 9]] * 18 for _ in page.sentences],
                            "text_with_links": page.sentences,
                            "charoffset_with_links": [[[0, 9]] * 18 for _ in page.sentences]})
                for i, page in enumerate(itertools.islice(pages, 340))
            ]  # fmt: skip
            content = bz2.compress("\n".join(lines).encode())
            member = tarfile.TarInfo(f"enwiki/{number // 100:02d}/wiki_{number % 100:02d}.bz2")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    began, cpu = time.perf_counter(), time.process_time()
    import_file(source, folder / "data", silent)
    wall, spent = time.perf_counter() - began, time.process_time() - cpu
    size = (folder / "data" / "hotpotqa" / "pages.sqlite").stat().st_size
    scale = OFFICIAL_PAGES / (files * 340)
    return {
        "pages": files * 340,
        "wall_s": round(wall, 1),
        "cpu_s": round(spent, 1),
        "bytes": size,
        "whole_cpu_min": round(spent * scale / 60),
        "whole_gb": round(size * scale / 1e9, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = {"open_corpus": open_corpus()}
    print(json.dumps(found["open_corpus"]), flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        found["import"] = imported(folder, options.files)
        print(json.dumps(found["import"]), flush=True)
        path = folder / "large.sqlite"
        found["large"] = build(path, options.pages)
        found["large"] |= steps_on(path) | memory_of(path)
        print(json.dumps(found["large"]), flush=True)
    found["machine"] = {"cores": psutil.cpu_count(), "python": sys.version.split()[0]}
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
