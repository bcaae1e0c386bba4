"""Everything that a supervised command starts ends with it, and it ends with us, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from evalharness.base.errors import InfrastructureError
from evalharness.models.serving.supervisor import SupervisedProcess

from .processes import gone, tagged

TREE = Path(__file__).with_name("tree.py")

# Starts the tree as a harness does, says so, and waits.
HOLDER = f"""
import asyncio, os, sys
from pathlib import Path
from evalharness.models.serving.supervisor import SupervisedProcess

async def main():
    process = await SupervisedProcess.start(
        [sys.executable, "-S", {str(TREE)!r}, sys.argv[1], "serve"],
        env=os.environ, log=Path(sys.argv[2]), scratch=Path(sys.argv[3]), grace=1.0)
    try:
        while "tree is up" not in Path(sys.argv[2]).read_text():
            await asyncio.sleep(0.05)
        print("up", flush=True)
        await process.wait()
    finally:
        await process.stop()

asyncio.run(main())
"""


@pytest.fixture
def tag() -> Iterator[str]:
    tag = f"tree-{uuid.uuid4()}"
    yield tag
    for process in tagged(tag):
        process.kill()


async def start(tag: str, mode: str, folder: Path, grace: float = 1.0) -> SupervisedProcess:
    scratch = folder / "scratch"
    scratch.mkdir()
    log = folder / "log"
    process = await SupervisedProcess.start(
        [sys.executable, "-S", str(TREE), tag, mode], env=os.environ, log=log, scratch=scratch, grace=grace
    )
    while "tree is up" not in log.read_text():
        await asyncio.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["serve", "deaf"])
async def test_stop_ends_the_whole_tree_even_what_ignores_sigterm(
    tag: str, mode: str, tmp_path: Path
) -> None:
    process = await start(tag, mode, tmp_path)
    assert process.alive
    assert len(tagged(tag)) >= 5  # the supervisor, the root, a child, an escaped one, an orphaned one
    await process.stop()
    assert not tagged(tag)
    assert not process.alive
    assert process.returncode == (-signal.SIGTERM if mode == "serve" else -signal.SIGKILL)
    assert not (tmp_path / "scratch").exists()
    await process.stop()


@pytest.mark.slow
@pytest.mark.parametrize("at_work", [True, False])
async def test_only_what_is_at_work_is_waited_for_longer_than_a_second(
    tag: str, at_work: bool, tmp_path: Path
) -> None:
    process = await start(tag, "slow", tmp_path, grace=20)
    if at_work:
        process.at_work()
    await process.stop()
    assert process.returncode == (4 if at_work else -signal.SIGKILL)
    assert not tagged(tag)


@pytest.mark.parametrize(("mode", "status"), [("exit", 3), ("crash", -signal.SIGSEGV)])
async def test_when_the_command_ends_by_itself_its_descendants_end_and_its_status_is_known(
    tag: str, mode: str, status: int, tmp_path: Path
) -> None:
    process = await start(tag, mode, tmp_path)
    assert await process.wait() == status
    assert not tagged(tag)
    assert not process.alive


async def test_the_tree_ends_even_when_the_supervisor_itself_is_killed(tag: str, tmp_path: Path) -> None:
    process = await start(tag, "serve", tmp_path)
    supervisor = next(p for p in tagged(tag) if any("supervisor.py" in word for word in p.cmdline()))
    supervisor.kill()
    assert await process.wait() == -signal.SIGKILL
    # What left the session before is out of reach without its supervisor; the server proper is not.
    assert gone(lambda: tagged(tag, "serve", "waiter"), within=10)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_tree_ends_when_its_owner_is_ended_by_any_signal(
    tag: str, number: signal.Signals, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, tag, str(tmp_path / "log"), str(scratch)], stdout=subprocess.PIPE
    ) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"up\n"
            assert len(tagged(tag)) >= 6
            owner.send_signal(number)
            owner.wait(60)
        finally:
            owner.kill()  # a test that fails must not wait for it for ever
    assert gone(lambda: tagged(tag))
    assert not scratch.exists()


async def test_a_command_that_does_not_exist_is_an_infrastructure_error_that_names_it(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(InfrastructureError, match="/no/such/vllm"):
        await SupervisedProcess.start(
            ["/no/such/vllm"], env=os.environ, log=tmp_path / "log", scratch=scratch
        )
    assert not scratch.exists()


async def test_output_is_appended_to_the_log(tag: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("an earlier start\n")
    process = await start(tag, "exit", tmp_path)
    await process.wait()
    assert (tmp_path / "log").read_text() == "an earlier start\ntree is up\n"


def test_it_works_on_uvloop(tag: str, tmp_path: Path) -> None:
    async def scenario() -> int:
        process = await start(tag, "serve", tmp_path)
        await process.stop()
        return await process.wait()

    assert uvloop.run(scenario()) == -signal.SIGTERM
    assert not tagged(tag)
