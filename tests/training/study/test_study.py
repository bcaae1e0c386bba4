"""A study of training: what its file may say, and which jobs it is."""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console
from studies import STUDY, session

from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.cli.study import forecast
from evalharness.config import RunConfig
from evalharness.records.files import MANIFEST
from evalharness.training.study.file import SHIPPED, KnownOptions, read_study_file, shipped
from evalharness.training.study.folder import StudyFolder
from evalharness.training.study.jobs import PROGRAM, StudyProgress, read_progress
from evalharness.training.study.plan import Plan, make_plan
from evalharness.training.study.show import table_of
from evalharness.training.study.writing import Writing, writing_left


def test_what_cells_share_is_one_job_and_cells_differ_in_their_labels(plan: Plan) -> None:
    kinds = Counter(job.kind for job in plan.jobs.values())
    assert kinds == {"data": 1, "training": 4, "run": 8}
    assert [cell.name for cell in plan.cells] == [
        "full-seed0", "full-seed1", "all_turns-seed0", "all_turns-seed1",
    ]  # fmt: skip
    words = plan.jobs["run all_turns-seed1-P1"].words
    assert {"mode=all_turns", "training_seed=1", "data_size=8"} <= set(words)
    assert words[words.index("--perturb") + 1] == "P1"
    assert "--perturb" not in plan.jobs["run all_turns-seed1-plain"].words
    assert plan.jobs["training full-seed1"].needs == ("data agent-8",)


def test_an_agent_of_the_axis_has_its_options_and_the_others_of_run(
    tmp_path: Path, known: KnownOptions
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(STUDY.replace("perturbation: [plain, P1]", "agent: [react, window+history=4]"))
    plan = make_plan(read_study_file(path, known), tmp_path / "study", tmp_path)
    words = " ".join(plan.jobs["run full-seed0-window-history-4"].words)
    assert "--agent window --agent-option history=4 --suite open --tasks alfworld" in words
    assert "--agent react --suite open" in " ".join(plan.jobs["run full-seed0-react"].words)


def test_a_study_that_is_stopped_has_every_mode_of_its_first_seed(plan: Plan) -> None:
    made = [job.name.split()[1].split("-")[:2] for job in plan.jobs.values() if job.kind == "training"]
    assert made == [["full", "seed0"], ["all_turns", "seed0"], ["full", "seed1"], ["all_turns", "seed1"]]
    last = [job for job in plan.jobs if "seed0" in job][-1]
    assert list(plan.jobs).index(last) < list(plan.jobs).index("training full-seed1"), "runs, too"


@pytest.mark.parametrize("named", ["301", "[301, 302]", "300-302"])
def test_suites_that_are_played_stay_out_of_the_data_beside_those_that_are_named(
    named: str, tmp_path: Path, known: KnownOptions
) -> None:
    path = tmp_path / "s.yaml"
    text = STUDY.replace("suite_seed: 201}", f"suite_seed: 201, exclude_suite_seeds: {named}}}")
    path.write_text(text.replace("  training_seed: [0, 1]", "  suite_seed: [0, 7]"))
    words = make_plan(read_study_file(path, known), tmp_path / "study", tmp_path).jobs["data agent-8"].words
    seeds = words[len(words) - 1 - words[::-1].index("--exclude-suite-seeds") + 1].split(",")
    assert {"7", "301"} <= set(seeds)
    assert "0" not in seeds


def test_every_study_that_comes_along_is_one_its_commands_take(
    tmp_path: Path, known: KnownOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    from evalharness.cli import make_parser

    names = {"table2", "table7", "fig5", "fig9", "heldout"}
    assert set(shipped()) == names | {f"{name}-small" for name in names}
    parser = make_parser()
    for name in shipped():
        study = read_study_file(SHIPPED / f"{name}.yaml", known)
        for job in make_plan(study, tmp_path / name, SHIPPED).jobs.values():
            parser.parse_args(job.words)
        if name.endswith("-small") and study.data.general:
            assert (SHIPPED / study.data.general).is_file()
    assert main(["study"]) == 0
    assert capsys.readouterr().out.split() == shipped()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("training_seed", "trainingseed", "line 6, axes.trainingseed: no such key; did you mean 'training_seed'?"),
        ("max_steps", "max_step", "line 10, tune.max_step: no such option; did you mean 'max_steps'?"),
        ("max_steps: 3", "seed: 3", "line 10, tune.seed: the study sets it"),
        ("max_steps: 3", "o: x", "line 10, tune.o: the study sets it"),
        ("max_steps: 3", "json: x", "line 10, tune.json: no such option"),
        ("suite_seed: 201", "suit_seed: 201", "line 9, data.grounded.suit_seed: no such option; did you mean"),
        ("all_turns]", "all_turn]", "line 3, axes.mode.1: input should be 'full'"),
        ("[0, 1]", "[0, 0]", "training_seed has a value twice"),
        ("  grounded: {tasks: alfworld, suite_seed: 201}", "  {}", "give one of grounded, corrected, scripts, file"),
        ("[plain, P1]", "[plain, P1", "line 8"),
        ("table2", "tabel2", "line 1, exhibit: tabel2: no such exhibit; did you mean 'table2'?"),
        ("[plain, P1]", "[plain, P9]", "run full-seed0-P9: "),
        ("tasks: alfworld}\n", "tasks: alfwrld}\n", "did you mean 'alfworld'?"),
        ("  training_seed: [0, 1]", "  mixing_ratio: 0.5", "mixing_ratio wants data.general"),
        ("run: {suite: open,", "run: {suite: open, suite_seed: [0, 1],", "run.suite_seed is one number"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named_with_its_line(
    old: str, new: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(STUDY.replace(old, new))
    assert main(["study", str(path)]) == 2
    error = capsys.readouterr().err
    assert why in error
    assert str(path) in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "results").exists()


def test_a_wrong_value_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(STUDY.replace("max_steps: 3", "method: lorra"))
    with pytest.raises(SystemExit) as end:
        main(["study", str(path), "-o", str(tmp_path / "study")])
    assert end.value.code == 2
    assert "did you mean 'lora'?" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_without_refinement_data_a_models_own_errors_are_regenerated_as_tasks_without_any(
    tmp_path: Path, known: KnownOptions
) -> None:
    """Not left out of the conversations: the same tasks are played anew; its half of the data is that of the others."""
    plan = make_plan(read_study_file(SHIPPED / "heldout.yaml", known), tmp_path / "study", SHIPPED)
    corrections = {name: job for name, job in plan.jobs.items() if "correct" in job.words}
    assert [job.words[job.words.index("--errors") + 1] for job in corrections.values()] == ["none", "own"]
    assert {job.words[2] for job in corrections.values()} == {str(plan.jobs["data played"].makes)}
    trained = {
        (words[words.index("--mode") + 1], Path(words[words.index("--data") + 1]).name)
        for job in plan.jobs.values()
        if job.kind == "training" and (words := job.words)
    }
    assert trained == {
        ("full", "agent-own-200.jsonl"),
        ("no_refine_loss", "agent-own-200.jsonl"),
        ("full", "agent-none-100.jsonl"),
        ("all_turns", "agent-own-200.jsonl"),
    }
    whole, half = (plan.jobs[f"data agent-{name}"].words for name in ("own-200", "none-100"))
    assert whole[2] == half[2], "mix draws its first part by the part's number"
    labels = {job.words[job.words.index("--label") + 1] for job in plan.runs}
    assert labels == {f"mode={mode}" for mode in ("full", "no_refine_loss", "no_refine_data", "all_turns")}


def test_every_model_that_is_trained_is_probed_where_the_file_says_so(
    tmp_path: Path, known: KnownOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(STUDY + "probe: {n: 7}\n")
    plan = make_plan(read_study_file(path, known), tmp_path / "study", tmp_path)
    for cell in plan.cells:
        assert cell.probe is not None
        job = plan.jobs[cell.probe]
        assert job.needs == (cell.training,)
        assert job.words[:3] == ("probe", "--model", str(tmp_path / "study" / "models" / cell.name))
        assert job.words[-2:] == ("-n", "7")
    notes = tmp_path / "notes"
    assert session(plan, tmp_path / "study", notes).count("done", "probe") == len(plan.cells) == 4
    said = table_text(read_progress(plan, tmp_path / "study"))
    assert said.splitlines()[0].split() == ["cell", "data", "training", "probe", "runs"]
    path.write_text(STUDY + "probe: {output: x}\n")
    with pytest.raises(UserError, match="the study sets it"):
        read_study_file(path, known)
    path.write_text(STUDY + "probe: {tasks: babyal}\n")
    assert main(["study", str(path), "-o", str(tmp_path / "other")]) == 2
    assert "probe full-seed0: --tasks: unknown family 'babyal'" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_no_model_is_played_where_the_file_has_no_run(
    tmp_path: Path, known: KnownOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = tmp_path / "s.yaml", tmp_path / "study"
    study = {key: value for key, value in yaml.safe_load(STUDY).items() if key != "run"}
    path.write_text(yaml.safe_dump(study))
    with pytest.raises(UserError, match="perturbation wants run"):
        read_study_file(path, known)
    del study["axes"]["perturbation"]
    path.write_text(yaml.safe_dump({**study, "probe": {"n": 7}}))
    assert main(["study", str(path), "-o", str(folder), "--dry-run"]) == 0
    assert "runs" not in capsys.readouterr().out
    plan = make_plan(read_study_file(path, known), folder, tmp_path)
    assert Counter(job.kind for job in plan.jobs.values()) == {"data": 1, "training": 4, "probe": 4}
    progress = session(plan, folder, tmp_path / "notes")
    assert table_text(progress).splitlines()[0].split() == ["cell", "data", "training", "probe"]
    for words in (["report", "-o", str(tmp_path / "page.html")], ["analyze"], ["plot", "-o", str(tmp_path)]):
        assert main([words[0], str(folder), *words[1:]]) == 2
        assert f"no run in {folder}" in capsys.readouterr().err
    assert main(["show", str(folder), "12"]) == 2
    assert f"no run in {folder}" in capsys.readouterr().err
    path.write_text(yaml.safe_dump({**study, "run": False}))
    with pytest.raises(UserError, match="run: input should be a valid dict"):
        read_study_file(path, known)
    path.write_text(yaml.safe_dump({**study, "run": None}))
    assert len(make_plan(read_study_file(path, known), folder, tmp_path).runs) == 4, "its defaults"


def test_of_the_runs_of_an_earlier_file_those_that_were_played_stay(
    tmp_path: Path, known: KnownOptions, plan: Plan
) -> None:
    folder, path = tmp_path / "study", tmp_path / "s.yaml"
    with StudyFolder(folder) as store:
        store.begin(path.read_text(), plan)
    played = plan.jobs["run full-seed0-P1"].makes
    played.mkdir()
    (played / MANIFEST).write_text("{}")
    study = {key: value for key, value in yaml.safe_load(STUDY).items() if key != "run"}
    del study["axes"]["perturbation"]
    path.write_text(yaml.safe_dump(study))
    with StudyFolder(folder) as store:
        store.begin(path.read_text(), make_plan(read_study_file(path, known), folder, tmp_path))
    assert json.loads((folder / "study.json").read_text())["runs"] == {"full-seed0-P1": "runs/full-seed0-P1"}


def table_text(progress: StudyProgress) -> str:
    console = Console(width=120, file=io.StringIO())
    console.print(table_of(progress))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_name_nearly_that_of_a_study_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "tabel2-small"]) == 2
    assert "did you mean 'table2-small'?" in capsys.readouterr().err


def test_dry_run_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a study whose base is not there, so that tokens are not known, either."""
    study = yaml.safe_load(STUDY) | {"axes": {"data_size": [4, 8], "base_model": str(tmp_path / "none")}}
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(study))
    words = [
        "study",
        str(path),
        "-o",
        str(tmp_path / "study"),
        "--dry-run",
        "--json",
        str(tmp_path / "f.json"),
    ]
    assert main([*words, "--gpu-price", "2.5"]) == 0
    out = capsys.readouterr().out
    assert "trainings: 2 of 2 to do; time not known before the first" in out
    assert "tokens of runs are not known" in out
    assert json.loads((tmp_path / "f.json").read_text())["forecast"]["seconds"] is None
    assert not (tmp_path / "study").exists()


def test_tokens_that_are_left_are_those_of_runs_that_are_not_done(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first cell's may be, and then it has none left."""
    progress = read_progress(plan, tmp_path / "study")
    done = plan.cells[0].runs[0]
    progress.states[done].status = "done"

    def planned(config: RunConfig, **_: object) -> SimpleNamespace:
        left = 0 if config.execution.output == plan.jobs[done].makes else 5
        family = SimpleNamespace(left=left, turns=10 * left, prompt_tokens=1e6, completion_tokens=1e6)
        return SimpleNamespace(families=[family])

    monkeypatch.setattr("evalharness.runs.dry_run.dry_run", planned)
    out = io.StringIO()
    forecast(argparse.Namespace(json=None), Console(width=200, file=out), "demo-base", progress, 1)
    assert "runs: 35 episodes, at most 350 turns as far as known, about 7.00 million prompt" in out.getvalue()


def test_the_program_is_this_package() -> None:
    done = subprocess.run([*PROGRAM, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("evalharness ")


def test_other_content_of_a_given_file_is_noticed(tmp_path: Path, known: KnownOptions) -> None:
    """Its mixture is made again and what follows is looked at again; a file that is only touched changes nothing."""
    path, data = tmp_path / "s.yaml", tmp_path / "own.jsonl"
    path.write_text(STUDY.replace("grounded: {tasks: alfworld, suite_seed: 201}", "file: own.jsonl"))
    data.write_text("{}\n")
    folder = tmp_path / "study"
    plan = make_plan(read_study_file(path, known), folder, tmp_path)
    session(plan, folder, tmp_path / "notes")
    data.write_text("{}\n")
    os.utime(data, (1, 1))
    assert read_progress(plan, folder).count("done") == len(plan.jobs)
    data.write_text("[]\n")
    assert read_progress(plan, folder).count("done") == 0


SYNTHESIS = """\
axes: {data_size: 4, base_model: demo-base, synthesis_model: [a, b]}
data:
  scripts: {n: 10}
run: {suite: open, tasks: alfworld}
"""


def _finished(folder: Path, kind: str, count: int, cost: list[float] | None) -> None:
    """A folder of synthesis with `count` finished, each 100 prompt and 50 completion tokens."""
    folder.mkdir(parents=True)
    one = {"persona": "p", "signals": ["OK"], "calls": 1, "mistakes": [[]], "script": {}}
    one |= {"prompt_tokens": 100, "completion_tokens": 50}
    lines = [{"key": f"p{n}", "index": n, **one} for n in range(count)]
    (folder / "passed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    session = {"wanted": 10, "prices": {"input": cost[0], "output": cost[1]} if cost else None}
    manifest = {
        "schema": 1,
        "digest": "d",
        "model_name": "m",
        "identity": {"kind": kind},
        "sessions": [session],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_what_is_left_to_write_is_estimated_from_what_is_written(tmp_path: Path, known: KnownOptions) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SYNTHESIS)
    folder = tmp_path / "study"
    plan = make_plan(read_study_file(path, known), folder, tmp_path)

    def left() -> Writing:
        found = writing_left(read_progress(plan, folder))
        assert found is not None
        return found

    assert left().line() == (
        "synthesis: 20 scripts and 20 trajectories to write; tokens and cost are not known before the first"
    )
    _finished(folder / "data" / "scripts-a", "scripts", 4, [2.0, 10.0])
    some = left()
    assert some.left == {"scripts": 16, "trajectories": 20}
    assert (some.prompt_tokens, some.completion_tokens) == (1600, 800)
    assert some.cost == pytest.approx((1600 * 2 + 800 * 10) / 1e6)
    assert some.line().endswith("; without trajectories, of which none is there yet")
    _finished(folder / "data" / "trajectories-b", "trajectories", 10, None)
    more = left()
    assert more.left == {"scripts": 16, "trajectories": 10}
    assert more.prompt_tokens == 2600
    assert more.cost is None, "the other writer has no price"


def test_show_of_a_study_of_trainings_is_its_exhibit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    runs = {}
    for seed in (0, 1):
        name = f"full-seed{seed}"
        runs[name] = f"runs/{name}"
        words = ["run", "--model", "random", "--suite", "open", "--tasks", "babyai", "--limit", "2"]
        words += ["--max-turns", "2", "-o", str(folder / runs[name])]
        assert main([*words, "--label", f"training_seed={seed}", "--label", "mode=full"]) == 0
    study = {
        "schema": 1,
        "kind": "trainings",
        "runs": {**runs, "full-seed2": "runs/full-seed2"},
        "missing": {},
    }
    (folder / "study.json").write_text(json.dumps(study))
    (folder / "study.yaml").write_text(STUDY)
    capsys.readouterr()
    assert main(["show", str(folder), "--json", str(tmp_path / "shown.json")]) == 0
    out = capsys.readouterr().out
    assert "no run of full-seed2: not played yet" in out
    assert "its runs:" in out
    assert json.loads((tmp_path / "shown.json").read_text())["exhibit"] == "table2"
    (folder / "study.yaml").write_text("[")
    assert main(["show", str(folder)]) == 2
    assert "study.yaml" in capsys.readouterr().err
