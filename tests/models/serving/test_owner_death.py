"""A real vLLM leaves no process behind, whatever ends the program that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .processes import gone, in_session

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

PARENT = Path(__file__).with_name("parent.py")
MOMENTS = ("loading vLLM", "reading the model's configuration", "starting the engine", "loading weights")


def wait_for(owner: subprocess.Popen[str], moment: str, log: Path) -> None:
    """Until the owner tells of that moment or a later one: a tiny model may be loaded between two looks at the log."""
    assert owner.stdout is not None
    earlier = MOMENTS[: MOMENTS.index(moment)]
    for line in owner.stdout:
        told = line.removeprefix("status vLLM starts: ")
        if told != line and not told.startswith(earlier):
            return
    pytest.fail(f"the owner ended before {moment!r}; server log: {log.read_text()[-2000:]}")


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        # Every signal at every moment: test_process.py, with programs that start at once. SIGKILL to the owner of a
        # server that answers: test_run_with_vllm.py.
        (signal.SIGINT, "reading the model's configuration"),
        (signal.SIGTERM, "loading weights"),
    ],
)
def test_no_process_is_left_when_the_owner_is_ended(
    number: signal.Signals, moment: str, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    with subprocess.Popen(
        [sys.executable, PARENT, tiny_checkpoint, "tiny-of-a-dying-owner", log],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as owner:
        try:
            wait_for(owner, moment, log)
            supervisor = psutil.Process(owner.pid).children()[0]
            tree = [supervisor, *supervisor.children(recursive=True)]
            assert len(tree) >= 2
            owner.send_signal(number)
            owner.wait(120)
        finally:
            owner.kill()  # a test that fails must not wait for it for ever
    assert gone(lambda: in_session(supervisor.pid))
    assert not [process for process in tree if process.is_running()]
    assert not list(tmp_path.glob("evalharness-*")), "the sockets' folder is removed as well"
