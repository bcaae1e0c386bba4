"""The wall clock jumps while a run is going on: a laptop wakes up, a time server corrects."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer

from evalharness.records.store import RunStore, read_episodes, read_manifest
from evalharness.results.tables import data_frames, write_parquet

from .runs import answer, assert_equal_runs, errors, options, play

DAY = 86_400


@pytest.fixture(scope="module")
def jumping_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    source = Path(__file__).with_name("clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


async def test_a_clock_that_jumps_changes_nothing_but_the_dates(
    environment: dict[str, str], tmp_path: Path, jumping_clock: Path
) -> None:
    """Forward by 400 days, then back to three days before the start, in the midst of the episodes."""
    shift = tmp_path / "shift"
    shift.write_text("0")
    jumps = {40: 400 * DAY, 80: -3 * DAY, 120: 7 * DAY}
    broken = {**environment, "LD_PRELOAD": str(jumping_clock), "CLOCK_SHIFT": str(shift)}
    async with ChatServer(latency=0.005).running() as server:
        arguments = options(server, "--samples", 3, "--concurrency", 4)
        server.answer = answer
        await play(environment, tmp_path / "whole", *arguments)
        answered = count(1)

        def jump(request: dict[str, Any]) -> str:
            if seconds := jumps.get(next(answered)):
                shift.write_text(str(seconds))
            return answer(request)

        server.answer = jump
        await play(broken, tmp_path / "broken", *arguments)
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    assert not errors(tmp_path / "broken")
    episodes = list(read_episodes(tmp_path / "broken"))
    started = [episode.started for episode in episodes]
    assert max(started) - min(started) > 400 * DAY  # the clock did jump
    assert all(0 <= episode.wall_s < DAY for episode in episodes)
    assert all(0 <= turn.latency_s <= turn.policy_s < DAY for episode in episodes for turn in episode.turns)


async def test_tables_from_the_future_do_not_hide_newer_episodes(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The tables were written while the clock was a year ahead; episodes were added after it was set right."""
    run = tmp_path / "run"
    await play(environment, run, "--model", "random", "--limit", 4)
    episodes = list(read_episodes(run))
    manifest = read_manifest(run)
    (run / "episodes.jsonl").unlink()
    with RunStore(run) as store:
        store.load_or_refuse(manifest.to_json())
        for episode in episodes[:3]:
            store.append(episode)
        write_parquet(run)
        for name in ("episodes", "turns"):
            path = run / f"{name}.parquet"
            os.utime(path, (path.stat().st_atime + 365 * DAY, path.stat().st_mtime + 365 * DAY))
        assert len(data_frames(run)[0]) == 3
        store.append(episodes[3])
        assert len(data_frames(run)[0]) == 4
