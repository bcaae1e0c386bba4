"""Whatever is in a file, a command that reads it works, or ends with one line for the person at the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = int(os.environ.get("EVALHARNESS_TEST_INPUTS", "200"))
SEED = os.environ.get("EVALHARNESS_TEST_SEED", "0")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(600 + 3 * INPUTS)
def test_no_damaged_file_ends_a_command_badly(tmp_path: Path) -> None:
    """No traceback, no hang, no memory without end: `INPUTS` inputs, each damaged in one way (`mutations`)."""
    paths = [str(ROOT / "tests" / "support"), str(ROOT)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.damage.forked", tmp_path / "inputs", SEED, "0", str(INPUTS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    ended = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(ended) == INPUTS, done.stderr
    wrong = [one for one in ended if one["problem"]]
    assert not wrong, json.dumps(wrong[:5], indent=1)
    assert {0, 2} <= {one["status"] for one in ended}
