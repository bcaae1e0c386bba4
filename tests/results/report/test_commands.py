"""`evalharness report`: the file, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import main

from .pages import NOTHING, SOLVED, report


def test_the_file_is_self_contained_and_the_same_each_time(tmp_path: Path) -> None:
    """Only hashed style and script are allowed, and no connection."""
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]})
    first, second = (report(folder, tmp_path / f"{i}.html").read_bytes() for i in range(2))
    assert first == second
    text = first.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "unsafe" not in policy[1]
    assert "connect-src 'none'" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)
    assert "url(" not in text


def test_what_cannot_be_one_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED]})
    b = make_run(tmp_path / "b", {"babyai": [SOLVED]}, suite="open")
    target = tmp_path / "r.html"
    for runs, why in (
        ([a, b], "make a report of each"),
        ([a, a], "given twice"),
        ([tmp_path], "not a run folder"),
    ):
        assert main(["report", *map(str, runs), "-o", str(target)]) == 2
        assert why in capsys.readouterr().err
    assert main(["report", str(a), "-o", str(tmp_path / "nowhere" / "r.html")]) == 2
    assert "-o FILE" in capsys.readouterr().err
    assert not target.exists()


def test_short_prints_scores_or_comparisons_as_markdown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a = make_run(Path("a"), {"babyai": [SOLVED] + [NOTHING] * 19}, name="old", called="mine")
    b = make_run(Path("b"), {"babyai": [SOLVED] * 20}, name="new")
    assert main(["report", str(a), "--short"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("**mine: BabyAI success 5.0 % [")
    assert "| BabyAI | 20/112 | 5.0 [" in out
    assert main(["report", str(a), str(b), "--short"]) == 0
    assert capsys.readouterr().out.startswith("**new is better than mine: BabyAI success +95.0 points")
    assert not Path("report.html").exists()
