"""The Python interface as documented: every example of docs/python-api.md is run."""

from __future__ import annotations

import asyncio
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_folder import make_foreign_repository
from made_runs import make_run

import evalharness
from evalharness.cli import main
from evalharness.runs.api import Study
from evalharness.runs.study_file import add_runs

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"
SOLVED, NOTHING = (True, 1.0), (False, 0.0)


@pytest.mark.slow
def test_the_examples_of_the_page_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {"folder": tmp_path}, PAGE.name, str(PAGE), 0)
    assert len(test.examples) > 15
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert results.failed == 0, "".join(report)


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a kernel of its own, as a reader runs it, in a repository with an `envs/`, `results/` and more of its own. A
    last cell of ours says what came out."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    (marks := tmp_path / "marks").mkdir()
    repository = make_foreign_repository(tmp_path / "repository", marks)
    monkeypatch.setenv("PYTHONPATH", str(repository))
    notebook = nbformat.read(PAGE.parent / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # kept clean in the repository
    probe = 'print(curves["oracle"].iloc[-1], len(board), len(comparison.frame()))'
    notebook.cells.append(nbformat.v4.new_code_cell(probe))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(repository)}}).execute()
    assert not list(marks.iterdir())
    assert notebook.cells[-1].outputs[0]["text"].split() == ["1.0", "15", "2"]
    kinds = [out.get("data", {}).keys() for cell in notebook.cells for out in cell.get("outputs", ())]
    assert any("image/png" in kind for kind in kinds)
    assert any("text/html" in kind for kind in kinds)


FOLDER_PAGE = PAGE.with_name("run-folder.md")
_NAMED = {
    "string": "string",
    "int": "int64",
    "float": "float64",
    "bool": "bool",
    "boolean": "boolean",
    "Int64": "Int64",
}


def documented_columns(table: str) -> dict[str, str]:
    """Column -> dtype, as the page lists them under the heading of `table`."""
    section = FOLDER_PAGE.read_text(encoding="utf-8").split(f"## `{table}`")[1].split("\n## ")[0]
    columns = {}
    for names, kind in re.findall(r"^\* (`[^(]+) \(([^)]*)\):?", section, re.MULTILINE):
        first, *more = (part.strip() for part in kind.split(","))
        if "null" in more:
            first = {"int": "Int64", "bool": "boolean"}.get(first, first)
        for name in re.findall(r"`(\w+)`", names):
            columns[name] = "object" if first.startswith("list") else _NAMED[first]
    return columns


@pytest.mark.parametrize("table", ["episodes", "turns"])
def test_the_frames_have_the_documented_columns_and_types(table: str, tmp_path: Path) -> None:
    run = evalharness.load_run(make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]}))
    frame = getattr(run, table)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == documented_columns(
        f"{table}.parquet"
    )


def test_importing_the_package_imports_no_heavy_library() -> None:
    """Every worker process imports it."""
    code = "import sys, evalharness; print({'numpy', 'pandas', 'scipy', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_public_names_are_there_and_no_others() -> None:
    assert set(evalharness.__all__) <= set(dir(evalharness))
    for name in evalharness.__all__:
        assert callable(getattr(evalharness, name)) or name == "__version__"
    with pytest.raises(AttributeError, match="leaderbord"):
        _ = evalharness.leaderbord  # type: ignore[attr-defined]


def test_run_works_where_an_event_loop_is_running_already(tmp_path: Path) -> None:
    """As in a notebook."""

    async def cell() -> float:
        run = evalharness.run("oracle", suite="open", tasks="babyai:0-1", output=tmp_path / "run")
        return float(run.summary.families["babyai"].success_rate)

    assert asyncio.run(cell()) == 1.0


def test_frames_are_the_same_from_parquet_and_from_the_episodes(tmp_path: Path) -> None:
    import pandas as pd

    from evalharness.results.tables import write_parquet

    folder = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING], "pddl": [NOTHING]})
    fresh = evalharness.load_run(folder)
    assert not (folder / "episodes.parquet").exists()
    episodes, turns = fresh.episodes, fresh.turns
    write_parquet(folder)
    again = evalharness.load_run(folder)
    pd.testing.assert_frame_equal(again.episodes, episodes)
    pd.testing.assert_frame_equal(again.turns, turns)
    # A run that has gone on since is read from its episodes, not from tables made before.
    lines = (folder / "episodes.jsonl").read_text().splitlines(keepends=True)
    (folder / "episodes.jsonl").write_text("".join(lines[:1]))
    os.utime(folder / "episodes.jsonl", ns=(2**62, 2**62))
    assert len(evalharness.load_run(folder).episodes) == 1


def test_the_rows_of_a_study_say_their_study_run_model_and_perturbation(tmp_path: Path) -> None:
    """By `load_run` and exported; the stored tables do not name their folders."""
    import pandas as pd

    from evalharness.results.tables import write_parquet

    for name, perturb, solved in (("unperturbed", None, [SOLVED, SOLVED]), ("P1", "P1", [SOLVED, NOTHING])):
        make_run(tmp_path / "sweep" / name, {"alfworld": solved}, name="alpha", perturb=perturb)
    add_runs("sweep", tmp_path / "sweep", {"unperturbed": "unperturbed", "P1": "P1"}, [])
    study = evalharness.load_run(tmp_path / "sweep")
    keys = ["study", "run", "model", "perturbation"]
    means = {("sweep", "P1", "alpha", "P1"): 0.5, ("sweep", "unperturbed", "alpha", "-"): 1.0}
    for name in ("unperturbed", "P1"):
        write_parquet(tmp_path / "sweep" / name)
    assert main(["export", str(tmp_path / "sweep"), "--format", "parquet", "-o", str(tmp_path / "out")]) == 0
    read = pd.concat(
        [pd.read_parquet(path) for path in sorted((tmp_path / "sweep").glob("*/episodes.parquet"))]
    )
    assert set(zip(read["model"], read["perturbation"].fillna("-"), strict=True)) == {
        ("alpha", "P1"),
        ("alpha", "-"),
    }
    for rows in (study.episodes, pd.read_parquet(tmp_path / "out" / "episodes.parquet")):
        assert rows.fillna({"perturbation": "-"}).groupby(keys)["success"].mean().to_dict() == means
    assert study.turns.groupby("run")["model"].unique().map(list).to_dict() == {
        "P1": ["alpha"], "unperturbed": ["alpha"]
    }  # fmt: skip
    assert isinstance(study, Study)
    assert study.runs["P1"].summary.families["alfworld"].success_rate == 0.5
    (tmp_path / "sweep").rename(tmp_path / "other")
    assert set(evalharness.load_run(tmp_path / "other").episodes["study"]) == {"other"}


def test_a_missing_run_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(evalharness.UserError, match="run folder"):
        evalharness.load_run(tmp_path)
    with pytest.raises(KeyError):
        evalharness.load_run(make_run(tmp_path / "run", {"pddl": [SOLVED]})).episode("pddl/agentboard/009")


def test_results_are_short_in_a_notebook(tmp_path: Path) -> None:
    name = "<script>alert(1)</script>\u202e"
    sizes = {"babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
    a = make_run(tmp_path / "a", {family: [(False, 0.0)] * n for family, n in sizes.items()}, name=name)
    b = make_run(tmp_path / "b", {"babyai": [(True, 1.0)] * 5}, name="b")
    run, comparison = evalharness.load_run(a), evalharness.compare(a, b)
    board = evalharness.leaderboard([b], published=False)
    assert repr(run) == f"<Run {name!r}, suite agentboard, 282/282 episodes, {str(a)!r}>"
    assert repr(comparison).startswith(f"<Comparison of 'b' with {name!r}: 2 tests, 5 tasks")
    assert repr(board) == "<Leaderboard of 1 rows, 1 of own runs, 1 families>"
    for result in (run, comparison, board):
        assert len(repr(result)) < 300


def test_a_run_that_is_gone_has_a_repr_all_the_same(tmp_path: Path) -> None:
    run = evalharness.Run(tmp_path / "<b>gone")
    assert "not readable" in repr(run)
