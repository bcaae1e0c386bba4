"""Ten and a hundred times as many episodes: what grows with them, and what must not.

    python benchmarks/growth.py [--episodes 416,4160,41600] [--replicas 8] [--places 64] [--json FILE]

For every number of episodes of short replies, on a simulator that takes next to nothing (`growth_environment`): wall
time, turns/s, the harness's memory after 400 episodes and at its highest, the size of the run folder, what `show`,
`compare` and `report` take to read it (in processes of their own: wall, CPU, memory), and how quick the page of the
report is in Chromium, where there is one. `compare` is with a copy whose every tenth episode ended otherwise.

The servers are REPLICAS fake ones of PLACES places each, all in one process (`fixed_latency_server.py`), 50 ms a reply.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
TASKS = 416
LATENCY = 0.05


@dataclass(frozen=True)
class Spent:
    wall_s: float
    cpu_s: float
    """Of the process itself and of what it has waited for."""
    memory_mib: float
    """At its highest, of the process itself."""


@dataclass(frozen=True)
class Grown:
    episodes: int
    turns: int
    run: Spent
    turns_per_s: float
    client_cpu_ms_per_turn: float
    memory_at_400_mib: float
    memory_while_playing_mib: float
    folder_mb: float
    reading: dict[str, Spent]
    page_mb: float
    page_ms: dict[str, float]


@contextlib.contextmanager
def servers(replicas: int, places: int) -> Iterator[list[str]]:
    command = [
        *(sys.executable, HERE / "fixed_latency_server.py"),
        *(str(LATENCY), str(places), "--replicas", str(replicas)),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield [f"http://127.0.0.1:{port}/v1" for port in process.stdout.readline().split()]
    finally:
        process.kill()
        process.wait()


def start(words: Sequence[object], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    """Its standard error is in a file: a pipe that nobody reads would stop it."""
    command = [sys.executable, "-m", "evalharness", *map(str, words)]
    with Path(variables["EVALHARNESS_HOME"]).with_name("stderr").open("wb") as errors:
        return subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=errors)


def ended(process: subprocess.Popen[bytes], began: float, variables: dict[str, str]) -> Spent:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(Path(variables["EVALHARNESS_HOME"]).with_name("stderr").read_text())
    return Spent(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def spent(words: Sequence[object], variables: dict[str, str]) -> Spent:
    began = time.perf_counter()
    return ended(start(words, variables), began, variables)


def memory_of(process: subprocess.Popen[bytes], folder: Path) -> list[tuple[int, float]]:
    """(bytes of episodes.jsonl, resident MiB) every half second, until the last episode is written."""
    found: list[tuple[int, float]] = []
    itself, episodes = psutil.Process(process.pid), folder / "episodes.jsonl"
    # `poll` would take the status that `wait4` is to have.
    with contextlib.suppress(psutil.Error):
        while itself.status() != psutil.STATUS_ZOMBIE:
            size = episodes.stat().st_size if episodes.exists() else 0
            # The tables at the end import pandas' and pyarrow's 100 MB.
            if not list(folder.glob("*.parquet*")) and not list(folder.glob(".*.parquet*")):
                found.append((size, itself.memory_info().rss / 2**20))
            time.sleep(0.5)
    return found


def other_run(run: Path, copy: Path) -> None:
    """The run as another model's, every tenth episode with the other outcome."""
    copy.mkdir()
    manifest = json.loads((run / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "model_name": "another"}))
    with (run / "episodes.jsonl").open() as lines, (copy / "episodes.jsonl").open("w") as out:
        for number, line in enumerate(lines):
            if number % 10 == 0:
                episode = json.loads(line)
                won = not episode["success"]
                line = json.dumps(episode | {"success": won, "solved": won, "progress": float(won)}) + "\n"
            out.write(line)


def page_times(page: Path) -> dict[str, float]:
    if shutil.which("chromium") is None:
        return {}
    from chromium import ARGUMENTS
    from playwright.sync_api import sync_playwright
    from report_page import measure

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        found = measure(browser.new_page(viewport={"width": 1280, "height": 900}), page.resolve().as_uri())
        browser.close()
    return found


def grow(episodes: int, options: argparse.Namespace, folder: Path) -> Grown:
    variables = {
        **os.environ, "EVALHARNESS_HOME": str(folder / "home"), "COLUMNS": "120",
        "PYTHONPATH": os.pathsep.join([str(HERE / "growth_environment"), str(HERE.parent)]),
    }  # fmt: skip
    samples = max(1, episodes // TASKS)
    run = folder / f"run-{episodes}"
    with servers(options.replicas, options.places) as urls:
        words: list[object] = ["run", "--suite", "open", "--tasks", "ring", "--samples", samples]
        words += [word for url in urls for word in ("--model", url)]
        words += ["--model-name", "fixed", "--temperature", 1, "--max-turns", options.turns, "-o", run]
        began = time.perf_counter()
        process = start(words, variables)
        memory = memory_of(process, run)
        whole = ended(process, began, variables)
    summary = json.loads((run / "summary.json").read_text())
    size = (run / "episodes.jsonl").stat().st_size
    early = [mib for written, mib in memory if written >= size * min(1.0, 400 / (samples * TASKS))]
    reading = {"show": spent(["show", run], variables)}
    other_run(run, other := folder / f"other-{episodes}")
    reading["compare"] = spent(["compare", run, other], variables)
    page = folder / f"report-{episodes}.html"
    reading["report"] = spent(["report", run, "-o", page], variables)
    return Grown(
        samples * TASKS, summary["turns"], whole, summary["turns"] / summary["wall_s"],
        1000 * summary["performance"]["client_cpu_s_per_turn"],
        early[0] if early else max(mib for _, mib in memory), max(mib for _, mib in memory),
        sum(path.stat().st_size for path in run.iterdir()) / 1e6, reading, page.stat().st_size / 1e6,
        page_times(page) if options.page else {},
    )  # fmt: skip


def lines_of(grown: Grown) -> Iterator[str]:
    yield (
        f"{grown.episodes:6} episodes, {grown.turns} turns: {grown.run.wall_s:.1f} s, {grown.turns_per_s:.0f} turns/s, "
        f"{grown.client_cpu_ms_per_turn:.2f} ms of the harness's CPU a turn"
    )
    yield (
        f"       memory {grown.memory_at_400_mib:.0f} MiB after 400 episodes, {grown.memory_while_playing_mib:.0f} MiB "
        f"at most while playing, {grown.run.memory_mib:.0f} MiB with the tables; folder {grown.folder_mb:.1f} MB"
    )
    for name, each in grown.reading.items():
        yield f"       {name:8} {each.wall_s:6.2f} s, CPU {each.cpu_s:6.2f} s, {each.memory_mib:5.0f} MiB"
    shown = ", ".join(f"{name} {value:.0f} ms" for name, value in grown.page_ms.items())
    yield f"       page {grown.page_mb:.1f} MB" + (f": {shown}" if shown else "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", default="416,4160,41600", metavar="N,N,...")
    parser.add_argument("--turns", type=int, default=4, help="turns of an episode at most")
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--places", type=int, default=64)
    parser.add_argument(
        "--no-page", dest="page", action="store_false", help="do not open the page in Chromium"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the run folders there")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        print(
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.replicas} x {options.places} places"
        )
        for episodes in map(int, options.episodes.split(",")):
            grown = grow(episodes, options, folder)
            found.append(asdict(grown))
            print("\n".join(lines_of(grown)), flush=True)
            if options.json:
                options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
