"""`show` reads the summary that was computed last; it never shows one of other episodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from made_runs import make_run

import evalharness
from evalharness.base.errors import DamageWarning
from evalharness.cli import main
from evalharness.records.store import EPISODES
from evalharness.records.summary import Summary
from evalharness.results.kept_summary import keep_summary, kept_summary
from evalharness.results.summary import summarize


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALHARNESS_HOME", str(tmp_path / "home"))
    return make_run(tmp_path / "run", {"babyai": [(True, 1.0), (False, 0.5)], "pddl": [(False, 0.25)]})


def shown(run: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What a person reads, and the JSON."""
    assert main(["show", str(run), "--verbose"]) == 0
    text = capsys.readouterr().out
    assert main(["show", str(run), "--json", "-"]) == 0
    return text, capsys.readouterr().out


def test_the_second_look_shows_what_the_first_one_did(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kept_summary(run) is None
    computed = shown(run, capsys)
    kept = kept_summary(run)
    assert kept is not None
    assert json.loads(computed[1]) == kept.summary == json.loads(json.dumps(summarize(run).to_json()))
    assert shown(run, capsys) == computed


def test_it_counts_for_these_very_episodes_only(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = shown(run, capsys)
    data = (run / EPISODES).read_bytes()
    (run / EPISODES).write_bytes(data[: data.rindex(b"\n", 0, -1) + 1])
    assert kept_summary(run) is None
    assert shown(run, capsys) != whole
    (run / EPISODES).write_bytes(data)
    assert shown(run, capsys) == whole
    # As many bytes at another time: another file, for all that is known.
    os.utime(run / EPISODES, ns=(1, 1))
    assert kept_summary(run) is None


def test_a_change_of_any_module_counts(run: Path, tmp_path: Path) -> None:
    """Wherever the code is that decides what a summary says."""
    package = tmp_path / "evalharness"
    shutil.copytree(Path(evalharness.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    ask = f"from evalharness.results.kept_summary import kept_summary; print(kept_summary(Path({str(run)!r})) is None)"

    def python(code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", f"from pathlib import Path; {code}"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout

    keep = (
        "from evalharness.results import kept_summary as k; from evalharness.results.summary import summarize; "
        f"run = Path({str(run)!r}); k.keep_summary(run, {{}}, lambda: summarize(run))"
    )
    python(keep)
    assert python(ask) == "False\n"
    for module in ("base/text.py", "envs/pddl/actions.py", "stats/ratio.py"):
        os.utime(package / module, ns=(1, 1))
        assert python(ask) == "True\n"
        python(keep)
        assert python(ask) == "False\n"


def test_it_says_where_the_run_is_as_it_is_asked_for(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(run, capsys)
    monkeypatch.chdir(run.parent)
    kept = kept_summary(Path("run"))
    assert kept is not None
    assert kept.summary.run == "run"


def test_damage_is_reported_each_time(run: Path) -> None:
    data = (run / EPISODES).read_bytes()
    (run / EPISODES).write_bytes(data + data.splitlines(keepends=True)[0])
    for _ in range(2):
        with pytest.warns(DamageWarning, match="each episode counts once"):
            keep_summary(run, {}, lambda: summarize(run))
        assert kept_summary(run) is None


def test_episodes_that_came_meanwhile_are_not_lost(run: Path) -> None:
    def computed_while_played() -> Summary:
        summary = summarize(run)
        with (run / EPISODES).open("ab") as file:
            file.write(b" ")
        return summary

    keep_summary(run, {}, computed_while_played)
    assert kept_summary(run) is None


def test_a_cache_that_cannot_be_written_or_read_is_none(run: Path, tmp_path: Path) -> None:
    summary = summarize(run)
    (tmp_path / "home").write_text("a file, where a folder should be")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert keep_summary(run, {}, lambda: summary) is summary
    assert kept_summary(run) is None


def test_showing_a_kept_summary_takes_no_numpy_and_no_pydantic(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown(run, capsys)
    script = (
        "import sys; from evalharness.cli import main; main(['show', sys.argv[1]]);"
        "print([name for name in ('numpy', 'pydantic', 'gymnasium', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, run], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
