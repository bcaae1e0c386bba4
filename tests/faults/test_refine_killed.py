"""Scripts and trajectories are killed again and again; the same command continues."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import psutil
from chat_server import ChatServer
from command_line import evalharness, read_records, start
from scripted_model import MISTAKES, SCRIPT_MISTAKES, answer, persona

from evalharness.training.synthesis.synthesis_store import CALLS, PASSED, REJECTED

from .runs import asked

KILLS = 5
"""Of scripts, and as many of trajectories."""
COPIES = 4
"""Of each pair of mistakes: 128 personas."""


def _lines(folder: Path) -> list[str]:
    """What was finished, in an order that does not depend on who was quicker."""
    return sorted(
        line
        for name in (PASSED, REJECTED)
        if (folder / name).exists()
        for line in (folder / name).read_text().splitlines()
    )


def _assert_equal(whole: Path, cut: Path) -> None:
    assert _lines(whole) == _lines(cut)
    calls = [(call["key"], call["call"]) for call in read_records(cut / CALLS)]
    assert len(calls) == len(set(calls))
    assert sorted(calls) == sorted((call["key"], call["call"]) for call in read_records(whole / CALLS))
    assert not [path for path in cut.iterdir() if path.name.endswith((".tmp", ".part"))]


async def test_kills_at_random_points_lose_no_call_and_make_none_twice(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """SIGKILL in the midst of 128 personas. What was written stays as it is byte by byte, and no request is made that
    undisturbed work did not make."""
    rng = random.Random(20261122)
    personas = tmp_path / "personas.jsonl"
    kinds = [(a, f"{b}/{copy}") for copy in range(COPIES) for a in SCRIPT_MISTAKES for b in MISTAKES]
    personas.write_text("".join(json.dumps({"persona": persona(*kind)}) + "\n" for kind in kinds))
    async with ChatServer(answer=answer, latency=0.05).running() as server:
        model = ("--model", server.url, "--model-name", "toy", "--concurrency", 8)
        for kind, source in (
            ("scripts", ("--personas", personas, "-n", len(kinds))),
            ("trajectories", ("--scripts", tmp_path / "scripts")),
        ):
            words = ("refine", kind, *source, *model, "-o")
            whole, cut = tmp_path / kind, tmp_path / f"{kind}-cut"
            done = await asyncio.to_thread(evalharness, environment, *words, whole)
            assert done.returncode == 0, done.stderr
            undisturbed = asked(server)
            for number in range(KILLS):
                process = await start(environment, *words, cut)
                ended = asyncio.create_task(process.communicate())
                wait = asyncio.create_task(server.after(rng.randint(1, 20)))
                await asyncio.wait({ended, wait}, return_when=asyncio.FIRST_COMPLETED)
                assert not ended.done(), f"kill {number} of {KILLS} came too late"
                family = psutil.Process(process.pid).children(recursive=True)
                process.kill()
                await ended
                assert not psutil.wait_procs(family, timeout=30)[1]
            before = (cut / CALLS).read_bytes()
            done = await asyncio.to_thread(evalharness, environment, *words, cut)
            assert done.returncode == 0, done.stderr
            assert "Traceback" not in done.stderr
            assert (cut / CALLS).read_bytes().startswith(before[: before.rfind(b"\n") + 1])
            assert asked(server) == undisturbed
            _assert_equal(whole, cut)
    assert (tmp_path / "trajectories" / "data.jsonl").read_bytes() == (
        tmp_path / "trajectories-cut" / "data.jsonl"
    ).read_bytes()
