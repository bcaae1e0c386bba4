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


def wait_for(owner: subprocess.Popen[str], word: str, log: Path) -> None:
    """Until the owner says so, or that its server is ready: a tiny model may be loaded between two looks at the log."""
    assert owner.stdout is not None
    for line in owner.stdout:
        if line.startswith((word, "ready")):
            return
    pytest.fail(f"the owner ended without saying {word!r}; server log: {log.read_text()[-2000:]}")


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        # Every signal at every moment: test_process.py, with programs that start at once. SIGKILL to the owner of a
        # server that answers: test_run_with_vllm.py.
        (signal.SIGINT, "status starting the engine"),
        (signal.SIGTERM, "status loading weights"),
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
            assert len(tree) >= 3
            owner.send_signal(number)
            owner.wait(120)
        finally:
            owner.kill()  # a test that fails must not wait for it for ever
    assert gone(lambda: in_session(supervisor.pid))
    assert not [process for process in tree if process.is_running()]
    assert not list(tmp_path.glob("evalharness-*")), "the sockets' folder is removed as well"
