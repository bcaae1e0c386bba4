"""`evalharness sweep`: the paper's table under perturbations, paired tests, one resumable study."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from statistics import pstdev, stdev

import pytest
from made_runs import made_study, make_run
from rich.console import Console

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.envs import specs
from evalharness.records.store import read_manifest
from evalharness.results.published import load_table
from evalharness.results.scored_run import load_scored_run
from evalharness.results.sweep import Sweep, default_perturbations, sweep_of
from evalharness.results.terminal.sweep import first_average_line, print_sweep
from evalharness.runs.study_file import read_study, run_folders

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)


def made_sweep(folder: Path, columns: dict[str | None, list[tuple[bool, float]]]) -> Sweep:
    runs = {}
    for name, outcomes in columns.items():
        place = make_run(folder / (name or "unperturbed"), {"alfworld": outcomes}, name="m", perturb=name)
        runs[name or "unperturbed"] = load_scored_run(place)
    return sweep_of(runs)


def test_the_table_has_rates_average_and_both_deviations(tmp_path: Path) -> None:
    sweep = made_sweep(
        tmp_path,
        {
            None: [SOLVED] * 8 + [HALF] * 2,
            "P1": [SOLVED] * 2 + [HALF] * 8,
            "P2": [SOLVED] * 5 + [NOTHING] * 5,
        },
    )
    success = [0.8, 0.2, 0.5]
    assert [column.rates["success"] for column in sweep.columns] == success
    assert [column.rates["progress"] for column in sweep.columns] == [0.9, 0.6, 0.5]
    assert sweep.average["success"] == pytest.approx(0.5)
    assert sweep.std_population["success"] == pytest.approx(pstdev(success))
    assert sweep.std_sample["success"] == pytest.approx(stdev(success))
    first = sweep.columns[1]
    assert first.retention == {"success": pytest.approx(0.25), "progress": pytest.approx(2 / 3)}
    assert first.differences["success"].p == stats.mcnemar_midp(0, 6)
    assert first.differences["success"].ci95 == stats.paired_interval([[-1.0] * 6 + [0.0] * 4], 0.5**6)
    success, progress = (
        [(c.differences[m].p, c.differences[m].p_holm) for c in sweep.columns[1:]]
        for m in ("success", "progress")
    )
    assert [holm for _, holm in success] == pytest.approx(stats.holm([p for p, _ in success]))
    least = [holm for _, holm in success]
    assert [holm for _, holm in progress] == [
        max(pair) for pair in zip(stats.holm([p for p, _ in progress]), least, strict=True)
    ]


def test_the_average_of_the_papers_first_version_stands_beside_that_of_the_last(tmp_path: Path) -> None:
    runs = {}
    for name, solved in (("unperturbed", 10), ("P1", 1), ("P2", 2), ("P3", 3), ("P4", 9)):
        outcomes = [SOLVED] * solved + [NOTHING] * (10 - solved)
        place = make_run(tmp_path / name, {"alfworld": outcomes}, perturb=None if solved == 10 else name)
        runs[name] = load_scored_run(place)
    sweep = sweep_of(runs, first_average=["P1", "P2", "P3"])
    assert sweep.average["success"] == pytest.approx(0.5)
    assert sweep.first_average is not None
    assert sweep.first_average["success"] == pytest.approx(0.2)
    assert "P1, P2, P3 only" in first_average_line(sweep)
    assert first_average_line(sweep_of(dict(list(runs.items())[:3]), first_average=["P1", "P2", "P3"])) == ""


def test_perturbations_whose_wording_is_recalled_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "perturbations", "show", "alfworld", "P5"]) == 0
    assert "from memory" in capsys.readouterr().out
    assert main(["data", "perturbations", "show", "alfworld", "P1"]) == 0
    assert "recalled" not in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--verbose"]])
def test_recalled_wordings_are_marked_in_their_columns_and_in_average_and_std(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_sweep(tmp_path, {None: [SOLVED] * 8, "P1": [SOLVED] * 8, "P4": [SOLVED] * 4 + [NOTHING] * 4})
    folder = made_study(tmp_path, "sweep", ["unperturbed", "P1", "P4"])
    assert main(["show", str(folder), *options]) == 0
    out = capsys.readouterr().out
    assert "\n\u2021 P4: " in out
    rates = {
        row.split()[0]: row.split()[1] for row in out.splitlines() if row[:1].isalnum() and row.split()[1:]
    }
    assert [rates[name] for name in ("P1", "P4", "Average")] == ["100.0", "50.0\u2021", "83.3\u2021"]
    assert rates["Std"].endswith("\u2021")
    assert out.count("83.3\u2021") == (4 if options else 2)


def test_the_published_row_that_follows_from_its_columns_is_reproduced() -> None:
    """AgentRefine's success: 44.8 50.0 51.5 54.5 45.5 44.8 have average 48.5 and population Std 3.73."""
    row = next(row for row in load_table("perturbation") if row.names["method"] == "AgentRefine")
    columns = [row.numbers[f"{name}_success"].value for name in ("alfworld", "p1", "p2", "p3", "p4", "p5")]
    assert round(pstdev(columns), 2) == row.numbers["std_success"].value
    assert round(sum(columns) / 6, 1) == row.numbers["average_success"].value


def test_retention_is_unknown_where_nothing_was_solved_before(tmp_path: Path) -> None:
    sweep = made_sweep(tmp_path, {None: [NOTHING] * 3, "P2": [NOTHING] * 3})
    assert sweep.columns[1].retention == {"success": None, "progress": None}


@pytest.mark.parametrize("family", ["alfworld", "babyai"])
def test_the_tables_fit_80_columns(family: str, tmp_path: Path) -> None:
    names = [None, *default_perturbations(specs()[family])]
    runs = {}
    for i, name in enumerate(names):
        outcomes = {family: [SOLVED] * (99 - i) + [NOTHING] * i}
        runs[name or "unperturbed"] = load_scored_run(
            make_run(tmp_path / str(name), outcomes, name="m", perturb=name)
        )
    console = Console(width=80, record=True, file=StringIO())
    print_sweep(console, sweep_of(runs), verbose=True)
    text = console.export_text()
    assert all(len(line.rstrip()) <= 80 for line in text.splitlines())
    assert "…" not in text
    for name in names[1:]:
        assert f"  {name} " in text
    assert "Average" in text
    assert "standard deviation" in text


def stored_sweep(folder: Path, outcomes: dict[str | None, list[tuple[bool, float]]]) -> Path:
    names = []
    for perturb, listed in outcomes.items():
        names.append(perturb or "unperturbed")
        make_run(folder / names[-1], {"alfworld": listed}, name=folder.name, perturb=perturb)
    return made_study(folder, "sweep", names)


def solved(n: int) -> list[tuple[bool, float]]:
    return [SOLVED] * n + [NOTHING] * (40 - n)


def test_two_sweeps_are_compared_by_what_they_lose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """alpha loses 25 and 15 of 40 tasks, gamma 5 and 5; both lose the tasks that they solved last."""
    alpha = stored_sweep(tmp_path / "alpha", {None: solved(30), "P1": solved(5), "P2": solved(15)})
    gamma = stored_sweep(
        tmp_path / "gamma", {None: solved(20), "P1": solved(15), "P2": solved(15), "P3": solved(1)}
    )
    target = tmp_path / "out.json"
    assert main(["compare", str(alpha), str(gamma), "--json", str(target)]) == 0
    first = " ".join(capsys.readouterr().out.split())
    assert first.startswith(
        "gamma loses less under perturbation than alpha: success -12.5 against -50.0 points, difference +37.5 ["
    )
    assert "left out, in one sweep only: P3" in first
    [found] = json.loads(target.read_text())["comparisons"]
    rows = {d["family"]: d for d in found["differences"] if d["measure"] == "success"}
    assert list(rows) == ["all perturbations", "P1", "P2"]  # alpha has no P3
    changes = [0.0] * 5 + [-0.5] * 10 + [-1.0] * 15 + [0.0] * 10, [0.0] * 15 + [-1.0] * 5 + [0.0] * 20
    halves = [(b - a) / 2 for a, b in zip(*changes, strict=True)]
    every = rows["all perturbations"]
    assert (every["baseline"], every["run"]) == (-0.5, -0.125)
    assert every["p"] == stats.permutation_test(halves)
    assert every["ci95"] == pytest.approx([2 * end for end in stats.paired_interval([halves], every["p"])])
    assert main(["compare", str(alpha), str(alpha)]) == 0
    assert "do not differ significantly under perturbation" in " ".join(capsys.readouterr().out.split())


def test_sweeps_without_a_common_perturbation_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = stored_sweep(tmp_path / "one", {None: solved(3), "P1": solved(2)})
    other = stored_sweep(tmp_path / "other", {None: solved(3), "P2": solved(2)})
    assert main(["compare", str(one), str(other)]) == 2
    assert "no perturbation in common" in capsys.readouterr().err


@pytest.mark.parametrize("width", ["80", "10000"])
def test_a_sweep_is_one_answer_and_one_table(
    width: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    study = stored_sweep(tmp_path / "alpha", {None: solved(30), "P1": solved(5), "P2": solved(30)})
    assert main(["show", str(study)]) == 0
    out = capsys.readouterr().out
    assert " ".join(out.split()).startswith(
        "alpha loses under perturbation: success 75.0 -> 43.8 %, -31.2 points ["
    )
    lines = [line.split() for line in out.splitlines()]
    assert ["unperturbed", "75.0", "-", "75.0", "-"] in lines
    [p1] = [line for line in lines if line and line[0] == "P1"]
    assert p1[1] == "12.5"
    assert p1[4].endswith("*")


def test_the_published_perturbations_are_the_columns_where_there_are_any() -> None:
    found = specs()
    assert default_perturbations(found["alfworld"]) == ["P1", "P2", "P3", "P4", "P5"]
    for family in ("babyai", "jericho", "pddl", "sciworld"):
        assert default_perturbations(found[family]) == list(found[family].actions.wording.perturbations)


@pytest.mark.slow
def test_a_sweep_is_one_study_that_continues_and_grows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, table, rows = tmp_path / "study", tmp_path / "sweep.json", tmp_path / "sweep.csv"
    options = [
        "sweep", "--suite", "open", "--model", "oracle", "--tasks", "babyai", "--limit", "2", "-o", str(folder),
    ]  # fmt: skip
    assert main([*options, "--perturb", "verbs"]) == 0
    assert "1 of 2: unperturbed" in capsys.readouterr().err
    kept = {name: (folder / name / "episodes.jsonl").read_bytes() for name in ("unperturbed", "verbs")}
    # A column that was cut off is left to play; one that is whole is left alone; a new one joins.
    lines = kept["verbs"].splitlines(keepends=True)
    (folder / "verbs" / "episodes.jsonl").write_bytes(lines[0])
    again = main([*options, "--perturb", "verbs", "order+joined", "--json", str(table), "--csv", str(rows)])
    assert again == 0
    assert (folder / "unperturbed" / "episodes.jsonl").read_bytes() == kept["unperturbed"]
    assert (folder / "verbs" / "episodes.jsonl").read_bytes().startswith(lines[0])
    assert len((folder / "verbs" / "episodes.jsonl").read_bytes().splitlines()) == 2
    assert read_study(folder) == (
        "sweep",
        {"unperturbed": "unperturbed", "verbs": "verbs", "joined+order": "joined+order"},
    )
    assert [path.name for path in run_folders([folder])] == ["unperturbed", "verbs", "joined+order"]
    assert read_manifest(folder / "joined+order").config.perturb == "joined+order"
    written = json.loads(table.read_text())
    assert [(c["name"], c["rates"]["success"]) for c in written["columns"]] == [
        ("unperturbed", 1.0), ("verbs", 1.0), ("joined+order", 1.0)
    ]  # fmt: skip
    names = [row["column"] for row in csv.DictReader(rows.read_text().splitlines())]
    assert names == ["unperturbed", "verbs", "joined+order", "average", "std_population", "std_sample"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tasks", "alfwrld"], "'alfworld'"),
        (["--tasks", "babyai", "--perturb", "P1"], "evalharness data perturbations list babyai"),
        (["--tasks", "babyai,pddl:0-3"], "one family"),
    ],
)
def test_what_cannot_be_swept_is_refused_before_anything_is_played(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    assert main(["sweep", "--suite", "open", "--model", "oracle", "-o", str(folder), *options]) == 2
    assert expected in capsys.readouterr().err
    assert not folder.exists()


def test_a_configuration_file_names_the_tasks_and_no_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, plan = tmp_path / "sweep.yaml", tmp_path / "plan.json"
    file.write_text("model: random\nsuite: open\ntasks: [babyai:0, babyai:2]\nmax_turns: 1\n")
    words = ["sweep", "--config", str(file), "--dry-run", "--json", str(plan)]
    assert main([*words, "--perturb", "verbs"]) == 0
    runs = json.loads(plan.read_text())["runs"]
    assert {name: run["families"][0]["tasks"] for name, run in runs.items()} == {"unperturbed": 2, "verbs": 2}
    file.write_text(file.read_text() + "perturb: order\n")
    for more in ([], ["--over", "agent=react,act"]):
        assert main([*words, *more]) == 2
        assert "--perturb NAME" in capsys.readouterr().err


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "run", {"babyai": [SOLVED]})
    options = ["sweep", "--suite", "open", "--model", "oracle", "--tasks", "babyai", "-o"]
    assert main([*options, str(tmp_path / "run")]) == 2
    assert "run folder" in capsys.readouterr().err
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.json").write_text('{"schema": 1, "kind": "bon", "runs": {}}')
    assert main([*options, str(tmp_path / "study")]) == 2
    assert "holds a bon study" in capsys.readouterr().err
    (tmp_path / "study" / "study.json").write_text("{")
    with pytest.raises(UserError, match="not readable"):
        read_study(tmp_path / "study")
