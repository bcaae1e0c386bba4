"""Following a training: its events, its end, an interruption; here a few lines of Python stand where it trains."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalharness.training.tune.process import follow, make_variables, parse
from evalharness.training.tune.progress import TuningProgress

STEP = {
    "event": "step",
    "step": 1,
    "steps": 9,
    "loss": 1.5,
    "tokens": 100,
    "trained_tokens": 10,
    "seconds": 2.0,
}
TRAINING = """
import sys
print('@tune {"event": "ready"}', flush=True)
print("Loading weights", flush=True)
for line in sys.stdin:
    if line.strip() == "stop":
        print('@tune {"event": "stopped"}', flush=True)
        sys.exit(0)
sys.exit(3)
"""


def test_only_events_are_events() -> None:
    assert parse('@tune {"event": "done", "step": 3}\n') == {"event": "done", "step": 3}
    for line in ("loss: 3", "@tune ", "@tune []", "@tune {}", '@tune {"event": 3}', "@tune {"):
        assert parse(line) is None


def control_c() -> None:
    raise KeyboardInterrupt


def sigterm() -> None:
    assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL, "would end the tests"
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("interrupt", [control_c, sigterm])
def test_the_first_interruption_asks_for_an_end_and_the_second_forces_it(
    tmp_path: Path, interrupt: Callable[[], None]
) -> None:
    events: list[str] = []
    asked: list[bool] = []
    before = signal.getsignal(signal.SIGTERM)

    def interrupted(event: dict[str, Any]) -> None:
        events.append(event["event"])
        if event["event"] == "ready":
            interrupt()

    script = tmp_path / "training.py"
    script.write_text(TRAINING)
    argv = [sys.executable, script]
    log = tmp_path / "tune.log"
    assert follow(argv, log, interrupted, lambda: asked.append(True)) == 0
    assert (events, asked) == (["ready", "stopped"], [True])
    assert log.read_text() == "Loading weights\n"

    def again(event: dict[str, Any]) -> None:
        interrupt()

    with pytest.raises(KeyboardInterrupt):
        follow(argv, log, again, lambda: None)
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_the_user_has_set_counts_and_foreign_packages_stay_out() -> None:
    found = make_variables({"PYTHONPATH": "/elsewhere", "HF_HUB_OFFLINE": "0", "OMP_NUM_THREADS": "3"})
    assert "PYTHONPATH" not in found
    assert (found["HF_HUB_OFFLINE"], found["OMP_NUM_THREADS"]) == ("0", "3")


def test_progress_adds_up_and_says_how_long_it_will_take() -> None:
    progress = TuningProgress()
    assert progress.seconds_left is None
    progress.take(STEP)
    progress.take({**STEP, "step": 2, "loss": 0.5, "tokens": 300, "seconds": 4.0})
    assert (progress.step, progress.tokens, progress.seconds) == (2, 400, 6.0)
    assert (progress.first_loss, progress.loss) == (1.5, 0.5)
    assert progress.tokens_per_s == pytest.approx(400 / 6)
    assert progress.seconds_left == pytest.approx(7 * 3.0)
