"""The run folder keeps what was finished and nothing else."""

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.records.episode import Episode, Trim, Turn
from evalharness.records.store import EPISODES, RunStore, read_episodes
from evalharness.results.tables import read_sorted_episodes, write_parquet

CONFIG = {"limit": 4, "samples": 1, "suite_seed": 0, "max_turns": 30, "temperature": 0.0}
IDENTITY = {"config": CONFIG, "model": {"name": "m"}, "tasks_sha256": {}, "prompts_sha256": {}}
MANIFEST = {
    "digest": "d",
    "identity": IDENTITY,
    "model_name": "m",
    "suite": "open",
    "counts": {"toy": 4},
    "expected": {"toy": 4},
    "held_out": {},
    "titles": {"toy": "Toy"},
    "labels": {"toy": "ours"},
    "sessions": [{"started": 0.0, "evalharness": "0"}],
}


def make_episode(index: int, text: str = "Thought: t\nAction: look") -> Episode:
    turn = Turn(1, text, "t", "look", "You see \x1b[31mnothing\u202e.", 0.5, True, ("several_actions",), (0,))
    return Episode(
        task_id=f"toy/open/{index:03d}",
        family="toy",
        suite="open",
        kind="room",
        difficulty="easy",
        labels="ours",
        sample=0,
        perturbation=None,
        goal="g",
        first_observation="o",
        turns=(turn, replace(turn, turn=2, action=None, format_errors=())),
        progress=0.5,
        success=False,
        solved=False,
        ended_by="turn_limit",
        trims=(Trim(2, 1),),
        subgoals=("see",),
        task_hash="h",
        prompt_hash="p",
        policy_s=0.1,
        environment_s=0.1,
        started=0.0,
        wall_s=0.2,
    )


def write_run(folder: Path, count: int) -> None:
    with RunStore(folder) as store:
        store.load_or_refuse(MANIFEST)
        store.begin(MANIFEST)
        for index in range(count):
            store.append(make_episode(index))


def test_an_episode_reads_back_as_it_was(tmp_path: Path) -> None:
    write_run(tmp_path, 2)
    assert list(read_episodes(tmp_path)) == [make_episode(0), make_episode(1)]


def test_what_a_killed_session_was_writing_is_cleared_away(tmp_path: Path) -> None:
    write_run(tmp_path, 1)
    for name in (".manifest.json.4711.tmp", ".episodes.parquet.tmp"):
        (tmp_path / name).write_bytes(b"half")
    with RunStore(tmp_path) as store:
        store.load_or_refuse(MANIFEST)
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_changed_configuration_is_refused_with_the_difference(tmp_path: Path) -> None:
    write_run(tmp_path, 1)
    before = (tmp_path / "manifest.json").read_bytes()
    other = {**MANIFEST, "identity": {**IDENTITY, "config": {**CONFIG, "limit": 8}}}
    with RunStore(tmp_path) as store, pytest.raises(UserError, match="--limit: 4 there, 8 now"):
        store.load_or_refuse(other)
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_damage_in_the_middle_is_told_with_its_line(tmp_path: Path) -> None:
    write_run(tmp_path, 3)
    lines = (tmp_path / EPISODES).read_bytes().split(b"\n")
    lines[1] = lines[1][:40]
    (tmp_path / EPISODES).write_bytes(b"\n".join(lines))
    with RunStore(tmp_path) as store, pytest.raises(UserError, match="line 2"):
        store.load_or_refuse(MANIFEST)


def test_an_episode_is_never_stored_twice(tmp_path: Path) -> None:
    with RunStore(tmp_path) as store:
        store.begin(MANIFEST)
        store.append(make_episode(0))
        with pytest.raises(ValueError, match="already stored"):
            store.append(make_episode(0))


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with RunStore(tmp_path), pytest.raises(UserError, match="another evalharness"), RunStore(tmp_path):
        pass


def test_a_run_refused_before_it_began_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), RunStore(tmp_path / "a" / "b"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stops_the_run_and_leaves_whole_lines(tmp_path: Path) -> None:
    """A real limit on file size in a real process: the write fails half way."""
    write_run(tmp_path, 1)
    size = (tmp_path / EPISODES).stat().st_size
    code = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.records.test_store import MANIFEST, make_episode
from evalharness.records.lines import StoreError
from evalharness.records.store import RunStore
with RunStore(Path(sys.argv[1])) as store:
    store.load_or_refuse(MANIFEST)
    store.append(make_episode(1))
    try:
        store.append(make_episode(2))
    except StoreError as error:
        print("refused:", error)
"""

    def limit() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * size + size // 2, 2 * size + size // 2))

    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parents[2])],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # it would be cut short as well, and stay so
        check=False,
    )
    assert "refused: cannot write" in done.stdout, done.stderr
    assert [e.task_id for e in read_episodes(tmp_path)] == ["toy/open/000", "toy/open/001"]
    assert (tmp_path / EPISODES).read_bytes().endswith(b"\n")


def test_tables_are_sorted_whatever_order_episodes_finished_in(tmp_path: Path) -> None:
    import pandas as pd

    for name, order in (("a", [2, 0, 1]), ("b", [0, 1, 2])):
        with RunStore(tmp_path / name) as store:
            store.begin(MANIFEST)
            for index in order:
                store.append(make_episode(index))
        write_parquet(tmp_path / name)
    assert [e.task_id[-1] for e in read_sorted_episodes(tmp_path / "a")] == ["0", "1", "2"]
    for table in ("episodes", "turns"):
        first, second = (pd.read_parquet(tmp_path / name / f"{table}.parquet") for name in "ab")
        pd.testing.assert_frame_equal(first, second)
    turns = pd.read_parquet(tmp_path / "a" / "turns.parquet")
    assert list(turns["action"].isna()) == [False, True] * 3
    assert json.loads(json.dumps(list(turns["observation"])))[0] == "You see \x1b[31mnothing\u202e."
