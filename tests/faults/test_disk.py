"""A disk that fills up, and a file cut off anywhere."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chat_server import ChatServer
from command_line import assert_same_results, command, evalharness

from evalharness.records.store import EPISODES, RunStore, read_episodes, read_manifest
from evalharness.results.tables import write_parquet

from .runs import answer, assert_equal_runs, options, play


@contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A tmpfs mounted on `folder`; yields a function that changes its size."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "evalharness-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here; the same with a limit on file size is tested besides")

    def resize(new: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={new}", str(folder)], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_a_disk_that_fills_up_stops_the_run_and_costs_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A real full file system (ENOSPC): first among the episodes, then where the tables are written."""
    async with ChatServer(answer=answer).running() as server:
        arguments = options(server, "--samples", 5, "--concurrency", 4)
        await play(environment, tmp_path / "whole", *arguments)
        with _small_disk(tmp_path / "disk", "64k") as resize:
            folder = tmp_path / "disk" / "run"
            said = await play(environment, folder, *arguments, status=3)
            assert f"{folder / EPISODES}: {os.strerror(errno.ENOSPC)}" in said
            kept = (folder / EPISODES).read_bytes()
            assert kept.endswith(b"\n")
            assert 0 < kept.count(b"\n") < 100
            said = await play(environment, folder, *arguments, status=3)
            assert (folder / EPISODES).read_bytes().startswith(kept)

            all_lines = (tmp_path / "whole" / EPISODES).stat().st_size
            resize(f"{all_lines + 20_000}")
            said = await play(environment, folder, *arguments, status=3)
            assert ".parquet" in said
            assert len(list(read_episodes(folder))) == 100

            resize("20m")
            await play(environment, folder, *arguments)
            assert_equal_runs(tmp_path / "whole", folder)
            assert not [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]


async def test_a_file_that_may_not_grow_stops_the_run_and_costs_nothing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """RLIMIT_FSIZE, where the kernel refuses the second half of a line (EFBIG)."""
    async with ChatServer(answer=answer).running() as server:
        arguments = options(server, "--samples", 2, "--concurrency", 4)
        await play(environment, tmp_path / "whole", *arguments)
        limit = (tmp_path / "whole" / EPISODES).stat().st_size // 2

        def limited() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = await asyncio.to_thread(
            subprocess.run,
            command("run", "--suite", "open", "--tasks", "compass", "-o", tmp_path / "broken", *arguments),
            # What Python compiles would be cut short as well, and stay so.
            env=environment | {"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
            preexec_fn=limited,
        )  # fmt: skip
        assert done.returncode == 3, done.stderr
        assert "File too large" in done.stderr
        assert (tmp_path / "broken" / EPISODES).read_bytes().endswith(b"\n")
        await play(environment, tmp_path / "broken", *arguments)
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")


@pytest.fixture
def quick_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a file system: thousands of files are written and synced."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else tmp_path))
    yield folder
    shutil.rmtree(folder)


def test_a_file_cut_at_any_byte_of_its_last_two_lines_is_made_whole(
    environment: dict[str, str], tmp_path: Path, quick_path: Path
) -> None:
    """Every byte through the store; five places where something could be special through the command."""
    whole, cut = tmp_path / "whole", quick_path / "cut"
    arguments = ("run", "--suite", "open", "--tasks", "compass:0-3", "--model", "random", "--max-turns", 2)
    done = evalharness(environment, *arguments, "--concurrency", 1, "-o", whole)
    assert done.returncode == 0, done.stderr
    data = (whole / EPISODES).read_bytes()
    manifest = read_manifest(whole)
    episodes = list(read_episodes(whole))
    ends = [position + 1 for position, byte in enumerate(data) if byte == 10]
    assert len(ends) == 4
    cut.mkdir()
    (cut / "manifest.json").write_bytes((whole / "manifest.json").read_bytes())
    for length in range(ends[1], ends[3] + 1):
        (cut / EPISODES).write_bytes(data[:length])
        with RunStore(cut) as store:
            store.load_or_refuse(manifest.to_json())
            # A line that lacks only its newline is whole.
            assert len(store.done) == sum(length >= end - 1 for end in ends)
            for episode in episodes:
                if (episode.task_id, episode.sample) not in store.done:
                    store.append(episode)
        assert (cut / EPISODES).read_bytes() == data
    write_parquet(cut)
    assert_same_results(whole, cut)

    middle = (ends[2] + ends[3]) // 2
    for length in (ends[1] + 1, ends[2] - 1, ends[2], middle, ends[3] - 1):
        (cut / EPISODES).write_bytes(data[:length])
        done = evalharness(environment, *arguments, "-o", cut)
        assert done.returncode == 0, done.stderr
        assert_same_results(whole, cut)
