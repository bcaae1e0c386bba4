"""Run folders that an editor, a sync tool or a disk has damaged: every command that reads them works, or ends with one
clear line and status 2."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import evalharness
from made_runs import make_run

from evalharness.base.errors import DamageWarning, UserError
from evalharness.cli import main
from evalharness.records.store import RunStore
from evalharness.records.summary import Timing
from evalharness.results.exports import trackers
from evalharness.results.scored_run import load_scored_run
from evalharness.results.summarize import write_summary
from tests.damage import readers

TIMING = {
    "wall_s": 3.0,
    "sessions": 1,
    "efficiency": 0.5,
    "performance": {
        "efficiency": 0.5,
        "bound": "model",
        "time": {"model": 1.0},
        "server": {
            **dict.fromkeys(("running_mean", "waiting_mean", "prompt_tokens_per_s", "generation_tokens_per_s"), 1.0),
            "kv_cache_usage_peak": 0.4,
            "prefix_cache_hit_rate": None,
        },
        "events": [{"event": "the server died", "at_s": 1.0}],
    },
}  # fmt: skip


def command(*arguments: str) -> Callable[[], int]:
    return lambda: main(arguments)


NAMES = (
    *(
        "show",
        "show task",
        "compare",
        "leaderboard",
        "analyze",
        "report",
        "csv",
        "parquet",
        "atif",
    ),
    *("openai-chat", "replay"),
)
READERS: dict[str, Callable[[], int]] = {
    **{name: readers.READERS[name].run for name in NAMES},
    "compare with": command("compare", "other", "run"),
    "export": command("export", "run", "--format", "wandb"),
}
SLOW_READERS = {
    "plot": readers.READERS["plot"].run,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a whole run to be damaged, and another to compare it with."""
    folder = tmp_path_factory.mktemp("damaged")
    for name in ("whole", "other"):
        make_run(folder / name, readers.OUTCOMES, suite="open", samples=2, temperature=1.0)
    write_summary(folder / "whole", Timing.of(TIMING))
    failure = {"time": 1.0, "task_id": "pddl/open/000", "sample": 1, "attempt": 1, "kind": "K", "error": "e"}
    (folder / "whole" / "errors.jsonl").write_text(json.dumps({**failure, "final": True}) + "\n")
    return folder


@pytest.fixture
def inside(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    monkeypatch.setattr(trackers, "TRACKERS", {"wandb": lambda *arguments: None})
    return place


def damaged_copy(place: Path, name: str, data: bytes) -> Path:
    """`run`, in the folder that the tests are in."""
    shutil.rmtree(place / "run", ignore_errors=True)
    shutil.copytree(place / "whole", place / "run")
    (place / "run" / name).write_bytes(data)
    return Path("run")


def read(reader: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Status and the lines of standard error that are no warnings of damage."""
    capsys.readouterr()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)
            status = reader()
    except UserError as error:  # as the command line shows it
        return 2, [f"evalharness: {line}" for line in str(error).splitlines()]
    lines = capsys.readouterr().err.splitlines()
    return status, [line for line in lines if not line.startswith("evalharness: warning: ")]


def changed(file: Path, **values: Any) -> bytes:
    """Its first document with other values."""
    first, _, rest = (
        file.read_bytes().partition(b"\n") if file.suffix == ".jsonl" else (file.read_bytes(), b"", b"")
    )
    return json.dumps(json.loads(first) | values).encode() + b"\n" + rest


MANIFEST, EPISODE = "manifest.json", "episodes.jsonl"
KNOWN: list[tuple[str, Callable[[Path], bytes], str]] = [
    (MANIFEST, lambda file: b"{}", "manifest.json is damaged (digest: field required)"),
    (MANIFEST, lambda file: b"[]", "manifest.json is damaged (not an object)"),
    (MANIFEST, lambda file: b"", "manifest.json is damaged"),
    (MANIFEST, lambda file: changed(file, counts=3), "(counts: input should be a valid dictionary)"),
    (MANIFEST, lambda file: changed(file, sessions=[]), "(sessions: "),
    (MANIFEST, lambda file: changed(file, titles={}), "(titles does not name 'babyai', which counts does)"),
    (MANIFEST, lambda file: changed(file, counts={"pddl": 1}), "(counts does not name 'babyai', which expected does)"),
    (MANIFEST, lambda file: file.read_bytes().replace(b'"samples": 2', b'"samples": 1000000'), "or equal to 10000)"),
    (MANIFEST, lambda file: file.read_bytes().replace(b'"max_turns": 30', b'"max_turns": 1000000'), "equal to 10000)"),
    (MANIFEST, lambda file: changed(file, counts=dict.fromkeys(readers.OUTCOMES, 10**9)), "more episodes than any run"),
    (EPISODE, lambda file: changed(file, progress="NaN"), "at line 1 (progress: input should be a valid number)"),
    (EPISODE, lambda file: changed(file, progress=float("nan")), "damaged at line 1 (progress: "),
    (EPISODE, lambda file: changed(file, progress=7.5), "damaged at line 1 (progress: "),
    (EPISODE, lambda file: changed(file, turns=[{}]), "damaged at line 1 (turns.0.turn: field required)"),
    (EPISODE, lambda file: changed(file, task_id=None), "damaged at line 1 (task_id: "),
    (EPISODE, lambda file: b"[1]\n" + file.read_bytes(), "damaged at line 1 ("),
    (EPISODE, lambda file: b"{" * 100_000 + b"\n" + file.read_bytes(), "damaged at line 1 ("),
]  # fmt: skip


@pytest.mark.parametrize(("name", "damage", "why"), KNOWN, ids=[f"{name}: {why}" for name, _, why in KNOWN])
def test_known_damage_is_one_line_in_every_reader(
    name: str,
    damage: Callable[[Path], bytes],
    why: str,
    inside: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damaged_copy(inside, name, damage(inside / "whole" / name))
    for reader in READERS.values():
        status, lines = read(reader, capsys)
        assert status == 2
        [line] = lines
        assert why in line


@pytest.mark.parametrize("reader", SLOW_READERS)
def test_pictures_of_a_damaged_run(reader: str, inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, damage, why in (KNOWN[0], KNOWN[7]):
        damaged_copy(inside, name, damage(inside / "whole" / name))
        status, [line] = read(SLOW_READERS[reader], capsys)
        assert status == 2
        assert why in line


def test_a_summary_that_is_damaged_loses_its_times_only(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for data in (b"[]", b'{"performance": {"efficiency": 1}}', b'{"wall_s": "long"}', b"\xff"):
        run = damaged_copy(inside, "summary.json", data)
        assert main(["show", str(run)]) == 0
        told = capsys.readouterr()
        assert "BabyAI" in told.out
        assert "summary.json is damaged" in told.err
        assert len(told.err.splitlines()) == 1


def test_an_episode_that_is_there_twice_counts_once_and_is_told(
    inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second of the two is another reading of the same attempt: it would have moved every rate."""
    lines = (inside / "whole" / EPISODE).read_bytes().splitlines(keepends=True)
    other = (
        json.dumps(json.loads(lines[1]) | {"success": True, "solved": True, "progress": 1.0}).encode() + b"\n"
    )
    run = damaged_copy(inside, EPISODE, b"".join([*lines, other, lines[0]]))
    told = (
        f"evalharness: warning: {run / EPISODE} is damaged: line 7 repeats babyai/open/000, sample 1, of line 2, and 1 "
        "more; each episode counts once, by its first line\n"
    )
    for name, reader in READERS.items():
        if name not in ("replay", "show task"):
            capsys.readouterr()
            assert reader() == 0
            assert told in capsys.readouterr().err, name
    with pytest.warns(DamageWarning, match="line 7 repeats"):
        scored = load_scored_run(run)
    assert scored.scores == load_scored_run(inside / "whole").scores


def test_a_damaged_study_is_not_continued(tmp_path: Path, environment: dict[str, str]) -> None:
    """`sweep` and `bon` on a study that they have finished, and `run --model replay:` of one of its runs."""
    common = ("--suite", "open", "--model", "random", "--max-turns", "2")
    bon = ("bon", *common, "--tasks", "babyai:0-1", "-n", "2", "-o", tmp_path / "bon")
    sweep = ("sweep", *common, "--tasks", "babyai:0-1", "--perturb", "capitals", "-o", tmp_path / "sweep")
    for arguments, run in ((bon, "samples"), (sweep, "capitals")):
        done = evalharness(environment, *arguments)
        assert done.returncode == 0, done.stderr
        folder = Path(arguments[-1])
        for file in (folder / "study.json", folder / run / MANIFEST, folder / run / EPISODE):
            whole = file.read_bytes()
            file.write_bytes(changed(file, progress="NaN") if file.suffix == ".jsonl" else b"[]")
            done = evalharness(environment, *arguments)
            assert done.returncode == 2
            assert "Traceback" not in done.stderr
            assert len([line for line in done.stderr.splitlines() if line.startswith("evalharness: ")]) == 1
            assert str(file) in done.stderr
            if file.suffix == ".jsonl":
                done = evalharness(environment, "run", "--suite", "open", "--model", f"replay:{folder / run}")
                assert done.returncode == 2
                assert "line 1 (progress: " in done.stderr
            file.write_bytes(whole)


@pytest.mark.parametrize("reader", [*READERS, "verify", "published", "continue"])
def test_a_later_format_is_refused_in_one_line(
    reader: str, inside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((inside / "whole" / "manifest.json").read_text())
    damaged_copy(inside, "manifest.json", json.dumps({**manifest, "schema": 99}).encode())
    more = {
        "verify": command("verify", "run"),
        "published": command("leaderboard", "run"),
        "continue": resume,
    }
    status, lines = read((READERS | more)[reader], capsys)
    assert status == 2
    assert len(lines) == 1, lines
    assert "format 99" in lines[0]
    assert lines[0].endswith("update evalharness")


def resume() -> int:
    """`evalharness run -o run` up to where it plays."""
    with RunStore(Path("run")) as store:
        store.load_or_refuse(store.manifest())
    return 0
