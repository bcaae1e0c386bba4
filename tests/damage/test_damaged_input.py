"""Whatever is in a file, a command that reads it works, or ends with one line for the person at the terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.damage import readers

INPUTS = int(os.environ.get("EVALHARNESS_TEST_INPUTS", "200"))
SEED = os.environ.get("EVALHARNESS_TEST_SEED", "0")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    readers.make_finished(folder)
    readers.make_data(folder)
    return folder


def _prompts(manifest: dict[str, Any]) -> None:
    manifest["made"]["prompts"] = ["babyai"]


def _made(manifest: dict[str, Any]) -> None:
    manifest["made"] = 3


@pytest.mark.parametrize(
    ("reader", "file", "change", "status"),
    [
        *((name, "data.manifest.json", change, 0)
          for name in ("report data", "label data") for change in (_prompts, _made)),
    ],
)  # fmt: skip
def test_known_damage_ends_no_command_badly(
    reader: str,
    file: str,
    change: Callable[[Any], Any],
    status: int,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A damaged record is named; a data set's manifest of another shape counts as none."""
    place = shutil.copytree(whole, tmp_path / "place")
    text = (place / file).read_text()
    first, *rest = text.splitlines() if file.endswith("l") else [text]
    document = json.loads(first)
    change(document)
    (place / file).write_text("\n".join([json.dumps(document), *rest, ""]))
    monkeypatch.chdir(place)
    assert readers.READERS[reader].run() == status
    assert status == 0 or f"{file} is damaged" in capsys.readouterr().err


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
