"""Labels of runs: short, and never the same for two of them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import main
from evalharness.records.store import read_manifest
from evalharness.results.report.bundle import load_bundle
from evalharness.results.run_labels import NamedRun, letter, run_labels, short_name

SOLVED, NOTHING = (True, 1.0), (False, 0.0)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("llama-3-8b", "llama-3-8b"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("/mnt/models/agentrefine-8b", "agentrefine-8b"),
        ("/mnt/models/lr2e-5/checkpoint-500", "lr2e-5/checkpoint-500"),
        ("../out/lr2e-5/global_step_30/actor/huggingface/", "lr2e-5/global_step_30/actor/huggingface"),
        ("/final", "final"),
        ("http://gpu1:8000/v1", "http://gpu1:8000/v1"),
        ("base:adapter", "base:adapter"),
        ("mine, 1/2 of the data", "mine, 1/2 of the data"),
    ],
)
def test_a_path_is_shortened_to_what_says_something(name: str, short: str) -> None:
    assert short_name(name) == short


def named(name: str, folder: str, **config: object) -> NamedRun:
    return NamedRun(name, Path(folder), config)


@pytest.mark.parametrize(
    ("runs", "labels"),
    [
        ([named("m", "a"), named("n", "b")], ["m", "n"]),
        ([named("m", "a", seed=0), named("m", "b", seed=1)], ["m (seed 0)", "m (seed 1)"]),
        ([named("m", "a"), named("m", "b", perturb="verbs")], ["m (unperturbed)", "m (verbs)"]),
        (
            [
                named("m", "a", perturb="verbs", seed=0),
                named("m", "b", perturb="verbs", seed=1),
                named("m", "c", perturb=None, seed=1),
            ],
            ["m (verbs, seed 0)", "m (verbs, seed 1)", "m (unperturbed, seed 1)"],
        ),
        (
            [
                named("m", folder, agent={"name": "window", "options": {"history": n}})
                for n, folder in ((4, "b"), (8, "a"))
            ],
            ["m (window history=4)", "m (window history=8)"],
        ),
        ([named("m", "/x/1/run"), named("m", "/x/2/run")], ["m (1/run)", "m (2/run)"]),
        ([named("meta/m", "a"), named("mine/m", "b")], ["meta/m", "mine/m"]),
        ([named("m", "a"), named("m", "a"), named("n", "b")], ["m (a)", "m (a) #2", "n"]),
    ],
)
def test_runs_of_one_name_are_told_apart_by_what_differs(runs: list[NamedRun], labels: list[str]) -> None:
    assert run_labels(runs) == labels


def test_letters_go_on_after_z() -> None:
    assert [letter(i) for i in (0, 1, 25, 26, 27, 52)] == ["A", "B", "Z", "AA", "AB", "BA"]


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs of one model that differ in their seed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for seed, outcome in ((0, NOTHING), (1, SOLVED), (2, SOLVED)):
        make_run(Path(f"run{seed}"), {"babyai": [outcome] * 6}, name="/models/mine", seed=seed, temperature=1)
    return ["run0", "run1", "run2"]


def test_compare_names_all_of_its_runs_and_keeps_their_letters(
    three: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *three, "--verbose"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line[1:3] == "  "] == [
        f"{'ABC'[i]}  mine (seed {i})  run{i}" for i in range(3)
    ]
    assert "B against A" in out
    assert "C against A" in out
    assert "C - A [95 % CI]" in out
    assert "C: 6" in out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["show", "--behaviour", *three]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[2] == "C  mine (seed 2)  run2"
    assert "C - A" in out


def test_the_leaderboard_and_plots_use_the_same_labels(
    three: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["leaderboard", *three, "--no-published"]) == 0
    out = capsys.readouterr().out
    assert main(["report", *three, "--figure", "plots"]) == 0
    with Path("plots/difficulty.csv").open() as file:
        drawn = list(dict.fromkeys(row["run"] for row in csv.DictReader(file)))
    assert drawn == [f"mine (seed {i})" for i in range(3)]
    assert all(label in out for label in drawn)


def test_a_runs_own_name_stands_in_every_table_latex_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, name in (("a", "8k data / seed 1"), ("b", "16k data")):
        make_run(Path(folder), {"babyai": [(True, 1.0)] * 3}, name="/models/x/checkpoint-500", called=name)
    for command in (
        ["show", "."],
        ["compare", "a", "b"],
        ["show", "--behaviour", "a", "b"],
        ["leaderboard", "a", "b"],
        ["leaderboard", "a", "b", "--format", "latex"],
        ["leaderboard", "a", "b", "--rows", "8k*", "--rows", "16k*"],
    ):
        assert main(command) == 0
        out = " ".join(capsys.readouterr().out.split())
        assert "8k data / seed 1" in out, command
        assert "16k data" in out, command
    bundle = load_bundle([Path("a"), Path("b")])
    assert [run["label"] for run in bundle.index["runs"]] == ["8k data / seed 1", "16k data"]


def test_the_same_command_with_another_name_renames_a_run(tmp_path: Path, clean_home: Path) -> None:
    folder = tmp_path / "run"
    words = ["run", "--model", "oracle", "--suite", "open", "--tasks", "babyai", "--limit", "1"]
    for name in ("first", "second"):
        assert main([*words, "-o", str(folder), "--name", name]) == 0
        manifest = read_manifest(folder)
        assert (manifest.run_name, manifest.user_labels) == (name, {})
    assert len((folder / "episodes.jsonl").read_text().splitlines()) == 1
