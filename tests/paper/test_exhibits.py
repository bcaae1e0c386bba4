"""`evalharness paper`: every exhibit with published rows, with rows of ours, and with what is wrong or missing."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_study, make_run
from refine_conversations import erring_conversation

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.judge import judging
from evalharness.judge.draw import load_turns
from evalharness.paper.exhibit import Given
from evalharness.paper.exhibits import EXHIBITS, find_exhibit
from evalharness.records.answers import make_manifest
from evalharness.results.published import load_table

SOLVED, HALF, NOTHING = (True, 1.0), (False, 0.5), (False, 0.0)
NAMES = [
    *(f"table{i}" for i in range(1, 8)),
    *(f"figure{i}" for i in (1, 3, 5, 6, 7, 9, 11)),
    *("judge", "mtbench", "hotpotqa"),
]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a pipe nothing is folded, whatever the terminal is that the tests were started in."""
    monkeypatch.delenv("COLUMNS", raising=False)


def shown(*arguments: object, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["paper", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def rows(exhibit: str, *arguments: object, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Those of models; differences between rows follow them in the file."""
    text = shown(exhibit, *arguments, "--csv", "-", capsys=capsys)
    return [row for row in csv.DictReader(io.StringIO(text)) if row["source"] != "difference"]


def sweep(folder: Path, *names: str) -> Path:
    make_run(folder / "unperturbed", {"alfworld": [SOLVED, SOLVED, HALF, NOTHING]}, name="m")
    for name in names:
        make_run(folder / name, {"alfworld": [SOLVED, HALF, NOTHING, NOTHING]}, name="m", perturb=name)
    return made_study(folder, "sweep", ["unperturbed", *names])


def test_every_exhibit_is_listed_with_what_fills_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a folder with runs: which of them stand in which exhibit, and what a sweep lacks."""
    assert list(EXHIBITS) == NAMES
    runs = tmp_path / "runs"
    make_run(runs / "plain", {"babyai": [SOLVED] * 3}, name="plain")
    labels = {"mode": "paper", "data_size": "4000"}
    make_run(runs / "tuned", {"babyai": [SOLVED] * 3}, name="tuned", label=labels)
    sweep(runs / "words", "P1")
    shown(runs, "--json", tmp_path / "list.json", capsys=capsys)
    found = {each["name"]: each for each in json.loads((tmp_path / "list.json").read_text())["exhibits"]}
    assert list(found) == NAMES
    assert found["table1"]["filled_by"] == ["plain", "tuned", "m"]
    assert found["table2"]["filled_by"] == found["figure5"]["filled_by"] == ["tuned"]
    assert found["table3"]["filled_by"] == ["m"]
    assert found["table3"]["missing"] == [f"m: no run under P{i}" for i in (2, 3, 4, 5)]
    assert found["table4"]["filled_by"] == []
    assert found["table4"]["missing"] == ["evalharness bon --model CKPT --tasks all"]


@pytest.mark.parametrize("name", NAMES)
def test_an_exhibit_without_runs_has_its_published_rows_and_fits_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = shown(name, capsys=capsys)
    assert max(map(len, out.splitlines())) <= 80
    filled = EXHIBITS[name].fill(Given(specs()))
    assert all(not row.ours for row in filled.tables[0].rows)
    assert bool(filled.tables[0].rows) == (name not in ("figure6", "figure9"))


@pytest.mark.parametrize(
    ("exhibit", "table"),
    [("table1", "main"), ("table2", "ablation"), ("table4", "best_of_n"), ("table7", "synthesis_models")],
)
def test_published_numbers_are_shown_as_printed(
    exhibit: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows(exhibit, capsys=capsys)
    for printed, row in zip(load_table(table), found, strict=True):
        for column, number in printed.numbers.items():
            assert float(row[column]) == pytest.approx(number.value, abs=1e-6)


def test_our_rows_come_after_with_intervals_protocol_and_paired_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 30 + [NOTHING] * 82}, name="a")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 80 + [NOTHING] * 32}, name="b")
    found = rows("table2", a, b, "--json", tmp_path / "t.json", capsys=capsys)
    assert [row["source"] for row in found] == ["published"] * 4 + ["run"] * 2
    assert found[0]["babyai_success"] == "37.1"
    assert found[0]["babyai_success_ci95_low"] == ""
    own = found[-1]
    assert (
        float(own["babyai_success_ci95_low"]) < float(own["babyai_success"]) == pytest.approx(100 * 80 / 112)
    )
    assert own["protocol"] == "agent react; suite agentboard; labels official; turns 30"
    assert own["pddl_success"] == ""
    difference = json.loads((tmp_path / "t.json").read_text())["tables"][1]["rows"][0]
    assert difference["name"] == "b - a"
    assert difference["babyai_success"] == pytest.approx(100 * 50 / 112)
    # Every task is of one made kind, so that the check by kind cannot confirm it.
    assert difference["babyai_success_marks"] == "(*)"
    assert difference["babyai_success_p"] == difference["babyai_success_p_holm"] < 0.001


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"suite": "open"}, "suite open (published: agentboard)"),
        ({"max_turns": 12}, "turns 12 (published: 30)"),
        ({"action_interface": "tools"}, "agent tools (published: react)"),
        ({"labels": {"babyai": "ours"}}, "labels ours (published: official)"),
        ({"max_tokens": 64}, "64 tokens"),
    ],
)
def test_a_row_of_another_protocol_is_shown_and_says_so(
    tmp_path: Path, options: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED] * 112}, name="mine", **options)
    out = shown("table1", run, capsys=capsys)
    assert said in out
    assert "\u2021" in next(line for line in out.splitlines() if line.strip().startswith("mine"))


def test_runs_of_two_protocols_are_two_rows_and_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 3}, name="a")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 3}, name="b", suite="open")
    out = shown("table1", a, b, capsys=capsys)
    assert "b is not" in out
    assert "differ in suite" in out
    assert "only BabyAI 3/112 tasks" in out
    more = [make_run(tmp_path / s, {"babyai": [SOLVED] * 3}, name=s, suite=s) for s in ("agentboard", "open")]
    out = " ".join(shown("table1", a, b, *more, capsys=capsys).split())
    assert "over 2 comparisons" in out


def test_a_sweep_is_a_row_with_its_perturbations_and_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rows("table3", sweep(tmp_path / "words", "P1", "P2"), capsys=capsys)
    assert (found[1]["first_average_success"], found[1]["std_success"]) == ("37.0", "19.97")
    own = found[-1]
    assert (float(own["alfworld_success"]), float(own["p1_success"])) == (50.0, 25.0)
    assert own["average_success"] == own["p3_success"] == ""
    out = shown("table3", tmp_path / "words", capsys=capsys)
    assert "missing: m: no run under P3" in out
    assert own["alfworld_success_marks"] == "\u2020", "a part of ALFWorld's 134 tasks"
    assert re.search(r"^m +-25\.0 \[", out, re.M)


def test_a_run_that_is_no_part_of_an_exhibit_is_answered_with_what_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", {"alfworld": [SOLVED]}, name="m")
    assert "evalharness sweep" in shown("table3", run, capsys=capsys)


def test_best_of_n_stands_below_the_published_blocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bon"
    make_run(folder / "greedy", {"pddl": [NOTHING, HALF]}, name="m")
    make_run(
        folder / "samples", {"pddl": [[SOLVED, NOTHING], [HALF, HALF]]}, name="m", samples=2, temperature=1.0
    )
    found = rows("table4", made_study(folder, "bon", ["greedy", "samples"]), capsys=capsys)
    assert [row["name"] for row in found[-4:]] == ["greedy", "one sample", "best of 2", "delta"]
    assert float(found[-1]["pddl_success"]) == 50.0
    out = shown("table4", folder, capsys=capsys)
    assert "samples 2 (published: 10)" in out
    alone = shown("table4", folder / "samples", capsys=capsys)
    assert "greedy run" in alone


def test_two_models_of_one_name_each_have_their_block_of_best_of_n(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint's name is the last folder of its path: none stands for the other, or hides it."""
    runs = []
    for path, result in (("one/m", SOLVED), ("two/m", HALF)):
        runs.append(make_run(tmp_path / path / "greedy", {"pddl": [NOTHING, NOTHING]}, name=path))
        samples: dict[str, Any] = {"samples": 2, "temperature": 1.0}
        runs.append(make_run(tmp_path / path / "some", {"pddl": [[result] * 2] * 2}, name=path, **samples))
    found = [row for row in rows("table4", *runs, capsys=capsys) if row["source"] == "run"]
    assert len({row["group"] for row in found}) == 2
    assert [row["pddl_success"] for row in found if row["name"] == "delta"] == ["100.0", "0.0"]


def test_repeats_of_a_study_are_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "seeds"
    for seed in (0, 1):
        make_run(folder / f"seed-{seed}", {"babyai": [SOLVED if seed else NOTHING] * 4}, name="m", seed=seed)
    made_study(folder, "seeds", ["seed-0", "seed-1"])
    [own] = [row for row in rows("table1", folder, capsys=capsys) if row["source"] == "run"]
    assert float(own["babyai_success"]) == 50.0


def test_points_of_a_curve_are_in_the_order_of_their_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        make_run(tmp_path / name, {"babyai": [SOLVED] * 4}, name=name, label={"data_size": size})
        for name, size in (("b", "8000"), ("a", "500"), ("c", "many"))
    ]
    found = rows("figure5", *runs, capsys=capsys)
    assert [row["name"] for row in found] == ["4,000", "8,000", "32,000", "500: a", "8000: b"]
    assert (found[0]["alfworld_success"], found[1]["alfworld_success"]) == ("36.6", "48.5")
    assert "'many'" in shown("figure5", *runs, capsys=capsys)


def test_a_curve_goes_over_what_a_file_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path / name, {"babyai": [SOLVED] * 4}, name=name) for name in ("a", "b")]
    (tmp_path / "x.csv").write_text("folder,ratio\nb,0.1\na,0.5\n")
    found = rows("figure9", *runs, "--x", f"mixture={tmp_path / 'x.csv'}", capsys=capsys)
    assert [row["name"] for row in found] == ["0.1: b", "0.5: a"]
    found = rows("figure5", *runs, "--x", f"tokens={tmp_path / 'x.csv'}", capsys=capsys)
    assert {row["source"] for row in found} == {"run"}


@pytest.mark.parametrize("ending", ["pdf", "svg", "png"])
def test_a_figure_is_drawn_the_same_each_time(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    run = make_run(tmp_path / "run", {"alfworld": [SOLVED, NOTHING]}, name="m")
    targets = [tmp_path / f"{i}.{ending}" for i in (1, 2)]
    for target in targets:
        shown("figure1", run, "-o", target, capsys=capsys)
    assert targets[0].read_bytes()[:4] in (b"%PDF", b"<?xm", b"\x89PNG")
    assert targets[0].read_bytes() == targets[1].read_bytes()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["tabel2"], "'table2'"),
        (["table2", "nowhere"], "nowhere"),
        (["table2", "."], "no run"),
        (["table2", "-o", "x.png"], "a table"),
        (["figure9", "-o", "x.png"], "nothing to draw"),
        (["figure1", "-o", "x.jpg"], ".pdf, .svg or .png"),
        (["--others"], "exhibit first"),
    ],
)
def test_a_bad_request_is_one_line(
    arguments: list[str],
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["paper", *arguments]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert why in error


def test_a_run_without_an_episode_keeps_no_other_from_the_exhibit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "runs" / "a", {"babyai": [SOLVED]}, name="a")
    empty = make_run(tmp_path / "runs" / "b", {"babyai": [SOLVED]}, name="b")
    (empty / "episodes.jsonl").write_text("")
    (tmp_path / "runs" / "c").mkdir()
    (tmp_path / "runs" / "c" / "study.json").write_text("{")
    out = shown("table1", tmp_path / "runs", capsys=capsys)
    assert re.search(r"a <", out)
    assert "no finished episode" in out
    assert "study.json" in out


def test_results_of_other_papers_are_shown_on_request_and_in_no_mean(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "claude2" not in shown("table1", capsys=capsys)
    found = {
        row["name"]: row for row in rows("table1", "--others", capsys=capsys) if row["source"] == "other"
    }
    assert len(found) == 15
    claude = found["claude2 (AgentBoard act-only agent)"]
    assert (claude["sciworld_success"], claude["held_out_success"]) == ("11.1", "")
    assert "act-only" in claude["protocol"]
    out = shown("table1", "--others", capsys=capsys)
    assert "other papers" in out


def test_a_run_of_a_study_that_is_gone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "words"
    for name in (None, "P1"):
        make_run(folder / (name or "unperturbed"), {"alfworld": [SOLVED, HALF]}, name="m", perturb=name)
    made_study(folder, "sweep", ["unperturbed", "P1", "gone"])
    assert rows("table3", folder, capsys=capsys)[-1]["name"] == "m"
    assert re.search(r"missing: \S+gone ", shown("table3", folder, capsys=capsys))


def test_data_sets_are_rows_of_the_exhibits_about_training_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One conversation with a run of two errors among five turns of the player, ten in all."""
    data = tmp_path / "train.jsonl"
    data.write_text(json.dumps(erring_conversation().to_json()) + "\n")
    own = rows("figure11", data, capsys=capsys)[-1]
    assert float(own["2_share_of_turns"]) == pytest.approx(100 * 2 / 10)
    assert float(own["2_share_of_player_turns"]) == pytest.approx(100 * 2 / 5)
    own = rows("table6", data, capsys=capsys)[-1]
    assert (own["name"], own["trajectories"], own["refinement_step"]) == ("train.jsonl", "1", "yes")
    (tmp_path / "bad.jsonl").write_text("{")
    assert "bad.jsonl" in shown("figure11", data, tmp_path / "bad.jsonl", capsys=capsys)
    if importlib.util.find_spec("sklearn"):
        own = rows("figure7", data, capsys=capsys)[-1]
        assert own["name"] == "train.jsonl"
        assert 0 <= float(own["BabyAI"]) < 1
        (tmp_path / "PDDL").write_bytes(data.read_bytes())
        own = rows("figure7", tmp_path / "PDDL", capsys=capsys)[-1]
        assert (own["name"], bool(own["BabyAI"])) == ("PDDL (data)", True)  # a name of a family, too


def test_a_persons_labels_and_a_judges_verdicts_are_a_row_of_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED, NOTHING]}, name="m")
    task = "babyai/agentboard/000"
    labels = tmp_path / "labels.csv"
    labels.write_text(f"task_id,sample,turn,label,kind,note\n{task},0,1,right,,\n{task},0,2,wrong,,\n")
    assert main(["judge", "label", str(run), "--rater", "ann", "--import", str(labels)]) == 0
    turns = load_turns(run)
    identity = {"kind": judging.KIND, "run_digest": turns.digest, "model": {"name": "toy"}}
    folder = run / "judgements" / "toy"
    folder.mkdir(parents=True)
    manifest = make_manifest(identity, "toy", drawn={"turns": 2, "seed": 0}, plain=False)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    said = {
        "kind": None,
        "note": "",
        "reply": "{}",
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "latency_s": 0.1,
    }
    verdicts = [
        {"task_id": task, "sample": 0, "turn": turn, "family": "babyai", "wrong": False, **said}
        for turn in (1, 2)
    ]
    (folder / "judgements.jsonl").write_text("".join(json.dumps(line) + "\n" for line in verdicts))
    published, own = rows("judge", run, capsys=capsys)
    assert [published[key] for key in COUNTS] == ["47.0", "9.0", "3.0", "41.0"]
    assert float(published["kappa"]) == pytest.approx(0.76, abs=0.005)
    assert [own[key] for key in COUNTS] == ["1", "0", "1", "0"]
    assert (own["name"], float(own["accuracy"])) == ("ann x toy", 0.5)


COUNTS = ("right_right", "right_wrong", "wrong_right", "wrong_wrong")
HOSTILE = '<script>alert(1)</script>|\x1b[2J\u202e\\input{x} =1+1 & "q"'


def test_a_hostile_name_is_text_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]}, name=HOSTILE)
    out = shown("table1", run, "--latex", tmp_path / "t.tex", "--csv", tmp_path / "t.csv", capsys=capsys)
    latex = (tmp_path / "t.tex").read_text()
    assert "\x1b" not in out + latex
    assert "\u202e" not in out + latex
    assert not any("\\input" in line for line in latex.splitlines() if not line.startswith("%"))


def test_mt_bench_folders_are_rows_and_a_damaged_one_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad", "worse"):
        folder = tmp_path / name
        folder.mkdir()
        prompt = "grade.yaml" if name == "worse" else {"name": "grade.yaml", "sha256": "0" * 64}
        identity = {"kind": "mtbench", "prompt": prompt}
        (folder / "manifest.json").write_text(json.dumps({"identity": identity}))
        scores = [{"name": part, "mean": 6.5, "interval": [6.0, 7.0]} for part in ("all", "turn 1", "turn 2")]
        summary = {"model": "mine", "judge": "j", "questions": {"name": "q"}, "left": 0, "scores": scores}
        (folder / "summary.json").write_text("[]" if name == "bad" else json.dumps(summary))
    out = shown("mtbench", *(tmp_path / name for name in ("good", "bad", "worse")), capsys=capsys)
    assert re.search(r"mine\u2021 < +6\.50 \[6\.00, 7\.00\]", out)
    assert "bad: " in out
    assert "worse: " in out
    assert "judge prompt" in out


def test_words_may_stand_behind_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", {"babyai": [SOLVED]}, name="mine")
    assert "mine <" in shown("table1", "--others", run, capsys=capsys)


def test_exhibits_are_found_by_short_names() -> None:
    assert find_exhibit("fig5").name == find_exhibit("Figure 5").name == "figure5"
