"""`evalharness leaderboard`: published rows, runs among them, and formats."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from made_runs import make_run

from evalharness.cli import main

SOLVED, NOTHING = (True, 1.0), (False, 0.0)
pytestmark = pytest.mark.usefixtures("narrow")
SIZES = {"alfworld": 134, "babyai": 112, "sciworld": 90, "pddl": 60, "jericho": 20}
OWN = {"hotpotqa": ("em", 300)}


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns: a table for each measure."""
    monkeypatch.setenv("COLUMNS", "80")


def complete_run(folder: Path, name: str = "mine", **options: object) -> Path:
    outcomes = {family: [SOLVED] * (n // 2) + [NOTHING] * (n - n // 2) for family, n in SIZES.items()}
    return make_run(folder, outcomes, name=name, **options)  # type: ignore[arg-type]


def board(*arguments: object, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    assert main(["leaderboard", *map(str, arguments), "--format", "csv"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


@pytest.mark.parametrize(
    ("series", "method", "success", "progress"),
    [
        ("GPT", "GPT-4o", 45.75, 67.26),
        ("GPT", "GPT-4o-mini", 28.00, 48.97),
        ("LLaMA-3-8B", "LLaMA-3-8B-Instruct", 22.69, 45.45),
        ("LLaMA-3-8B", "AgentGym", 25.18, 43.99),
        ("LLaMA-3-8B", "Agent-FLAN", 12.05, 23.64),
        ("LLaMA-3-8B", "AgentRefine", 23.73, 43.95),
        ("LLaMA-3-70B", "LLaMA-3-70B-Instruct", 46.09, 68.88),
        ("LLaMA-3-70B", "AgentRefine", 32.58, 53.63),
    ],
)
def test_held_out_score_of_published_rows(
    series: str, method: str, success: float, progress: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Worked by hand from the printed families with weights 112, 90, 60 and 20."""
    [row] = [r for r in board(capsys=capsys) if (r["series"], r["name"]) == (series, method)]
    assert 100 * float(row["held_out_success"]) == pytest.approx(success, abs=0.006)
    assert 100 * float(row["held_out_progress"]) == pytest.approx(progress, abs=0.006)


def test_the_demo_models_row_is_held_in_everywhere_and_follows_from_its_tasks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = Path(__file__).parents[3] / "results" / "reference"
    with (folder / "demo-tasks.csv").open(encoding="utf-8") as file:
        tasks = list(csv.DictReader(file))
    [row] = [r for r in board(capsys=capsys) if r["name"].startswith("demo")]
    assert set(row["held_in"].split()) == set(SIZES)
    for family, n in SIZES.items():
        own = [task for task in tasks if task["task_id"].startswith(f"{family}/")]
        assert len(own) == n
        for measure in ("success", "progress"):
            mean = sum(float(task[measure]) for task in own) / n
            assert float(row[f"{family}_{measure}"]) == pytest.approx(mean, abs=0.0005001)
    manifest = json.loads((folder / "demo-manifest.json").read_text(encoding="utf-8"))
    assert manifest["counts"] == SIZES
    assert not any(word.startswith("/") for start in manifest["sessions"] for word in start["policy"]["argv"])


def test_a_row_without_all_held_out_families_has_no_held_out_score(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [row] = [r for r in board(capsys=capsys) if r["name"] == "AgentGen"]
    assert row["held_out_success"] == row["held_out_progress"] == row["jericho_success"] == ""
    assert row["babyai_success"] == "0.205"


def test_our_run_stands_in_the_table_with_suite_labels_turns_and_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = complete_run(tmp_path / "run", labels={"jericho": "ours"})
    rows = board(folder, "--sort", "held_out_success", capsys=capsys)
    values = [float(r["held_out_success"]) for r in rows if r["held_out_success"]]
    assert values == sorted(values, reverse=True)
    assert rows[0]["name"] == "mine"
    assert float(rows[0]["held_out_success"]) == 0.5
    assert rows[0]["suite"] == "agentboard"
    assert rows[0]["max_turns"] == "30"
    assert "jericho=ours" in rows[0]["labels"]
    assert "ours for Jericho" in rows[0]["notes"]
    assert float(rows[0]["held_out_success_ci95_low"]) < 0.5 < float(rows[0]["held_out_success_ci95_high"])


def test_a_part_of_a_family_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED] * 10}, name="mine")
    assert main(["leaderboard", str(folder)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "BabyAI 10/112" in out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"suite": "open"}, "suite open"),
        ({"max_turns": 15}, "at most 15 turns"),
        ({"perturb": "P1"}, "perturbation P1"),
    ],
)
def test_other_protocols_are_refused_beside_published_rows(
    tmp_path: Path, options: dict[str, object], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_run(tmp_path / "run", {"babyai": [SOLVED] * 3}, **options)  # type: ignore[arg-type]
    assert main(["leaderboard", str(folder)]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1
    assert why in error
    assert "--no-published" in error
    assert main(["leaderboard", str(folder), "--no-published"]) == 0


def test_runs_alone_must_share_suite_and_turn_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = make_run(tmp_path / "a", {"babyai": [SOLVED] * 3}, suite="open")
    b = make_run(tmp_path / "b", {"babyai": [SOLVED] * 3}, suite="open", max_turns=20)
    c = make_run(tmp_path / "c", {"babyai": [SOLVED] * 3}, suite="open", suite_seed=4)
    assert main(["leaderboard", str(a), str(a), "--no-published"]) == 0
    for other in (b, c):
        capsys.readouterr()
        assert main(["leaderboard", str(a), str(other), "--no-published"]) == 2
        assert "differ in" in capsys.readouterr().err


def test_the_terminal_table_keeps_to_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    complete_run(tmp_path / "run", name="a-model-with-a-rather-long-name-0123456789")
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard", "run"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"AgentGym +61\.9\* +47\.3\* +18\.9\* +1\.7 +0\.0 +25\.2\*", out)
    assert main(["leaderboard", "run", "-o", "board.txt"]) == 0
    assert Path("board.txt").read_text().split() == out.split()


def test_one_run_among_the_published_rows_fits_thirty_lines_and_verbose_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven columns at any width; the first line says where the run stands."""
    folder = complete_run(tmp_path / "run")
    for width in ("80", "10000"):
        monkeypatch.setenv("COLUMNS", width)
        lines = text_board(folder, capsys=capsys).splitlines()
        assert len(lines) <= 30
        assert " ".join(lines[:2]).startswith(
            "mine: held-out success 50.0 % [44.2, 55.8]; 0 of 13 published rows"
        )
        [heading] = [line.split() for line in lines if "held-out" in line and "BabyAI" in line]
        assert heading == ["success", "ALFWorld", "BabyAI", "ScienceWorld", "PDDL", "Jericho", "held-out"]
        assert not any("progress" in line for line in lines)
    monkeypatch.setenv("COLUMNS", "80")
    every = text_board(folder, "--verbose", capsys=capsys)
    assert "progress" in every
    assert re.search(r"\nheld-out +50\.0 \[44\.2, 55\.8\]", every)
    assert "45.7 [40.2, 51.4]~" in text_board(folder, "--format", "md", capsys=capsys).replace("\\", "")


def test_rows_are_chosen_by_name_and_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = complete_run(tmp_path / "run")
    rows = board(folder, "--rows", "mine", "--rows", "LLaMA-3-8B*", capsys=capsys)
    assert {row["series"] for row in rows} == {"our runs", "LLaMA-3-8B"}
    assert [row["name"] for row in board("--rows", "AgentR*", capsys=capsys)] == ["AgentRefine"] * 3
    assert main(["leaderboard", "--rows", "AgentRefin"]) == 2
    assert "did you mean 'AgentRefine'" in capsys.readouterr().err


def test_an_unknown_column_names_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "--sort", "heldout_success"]) == 2
    assert "'held_out_success'" in capsys.readouterr().err


HOSTILE = '<script>alert(1)</script>|`x`\x1b[2J\u202e\\input{x} =1+1 & "q"'


def test_markdown_latex_and_csv_hold_a_hostile_name_as_text(tmp_path: Path) -> None:
    complete_run(tmp_path / "run", name=f"={HOSTILE}")
    texts = {}
    for ending in ("md", "tex", "csv", "json"):
        target = tmp_path / f"board.{ending}"
        assert main(["leaderboard", str(tmp_path / "run"), "-o", str(target)]) == 0
        texts[ending] = target.read_text(encoding="utf-8")
    row = next(line for line in texts["md"].splitlines() if line.startswith("| our runs"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 2 + 12 + 1
    assert "<script" not in texts["md"]
    assert not any("\\input" in line for line in texts["tex"].splitlines() if not line.startswith("%"))
    assert r"\textbackslash{}input" in texts["tex"]
    assert [r["name"][:2] for r in csv.DictReader(io.StringIO(texts["csv"]))][-1] == "'="
    assert json.loads(texts["json"])["rows"][-1]["name"] == f"={HOSTILE}"
    for ending in ("md", "tex"):
        assert "\x1b" not in texts[ending]


def test_the_table_of_one_family_has_its_columns_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", {"hotpotqa": [SOLVED, NOTHING]}, suite="hotpotqa", name="mine")
    assert main(["leaderboard", str(run), "--table", "hotpotqa", "--held-in", "hotpotqa"]) == 0
    out = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["%", "EM", "F1"] in out
    assert ["LLaMA-3-8B-Instruct", "29.3", "36.6"] in out
    assert ["mine", "<", "50.0*†"] in [line[:3] for line in out]


def text_board(*arguments: object, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["leaderboard", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def partial_run(folder: Path, **options: object) -> Path:
    """A lucky first few: 100 % of what was played, of five of 112 and 20 of 20 tasks."""
    return make_run(
        folder,
        {"babyai": [SOLVED] * 5, "jericho": [SOLVED] * 20},
        **{"name": "lucky", **options},  # type: ignore[arg-type]
    )


@pytest.mark.slow
def test_a_part_of_a_family_is_marked_in_its_cells_and_not_in_those_of_whole_families(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = partial_run(tmp_path / "run")
    out = text_board(folder, capsys=capsys)
    assert re.search(r"lucky < +- +100\.0† +- +- +100\.0 ", out)
    assert "\n† " in out
    assert "BabyAI 5/112 tasks" in " ".join(out.split())
    [row] = [r for r in board(folder, capsys=capsys) if r["name"] == "lucky"]
    assert row["incomplete"] == "babyai"
    assert main(["leaderboard", str(folder), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][-1]["incomplete"] == ["babyai"]
    for form, mark in (
        ("md", "100.0† "),
        ("latex", r"100.0$^\dagger$"),
    ):
        assert mark in text_board(folder, "--format", form, capsys=capsys)
    assert "†" not in text_board(capsys=capsys)


def test_a_part_of_a_family_never_ranks_above_the_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [partial_run(tmp_path / "part"), complete_run(tmp_path / "whole")]
    rows = board(*runs, "--sort", "babyai_success", capsys=capsys)
    with_value = [r for r in rows if r["babyai_success"]]
    assert with_value[-1]["name"] == "lucky"
    assert with_value[-1]["babyai_success"] == "1.0"
    rows = board(*runs, "--sort", "jericho_success", capsys=capsys)
    assert rows[0]["name"] == "lucky"


@pytest.mark.slow
def test_a_run_with_other_prompts_or_limits_is_marked_and_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, options, why in (
        ("a", {"prompts": {"babyai": "of their own"}}, "other prompts for BabyAI"),
        ("b", {"max_tokens": 1024}, "at most 1024 tokens a reply, not 256"),
        ("c", {"vllm_args": "--max-model-len 2048"}, "a context limit of its own (--max-model-len 2048)"),
        ("d", {"temperature": 0.7}, "mean of 1 samples at temperature 0.7, not greedy"),
    ):
        folder = complete_run(tmp_path / name, **options)  # type: ignore[arg-type]
        out = text_board(folder, capsys=capsys)
        assert re.search(r"mine < +50\.0‡ +50\.0‡", out)
        assert "\n‡ " in out
        assert why in " ".join(out.split())
        [row] = [r for r in board(folder, capsys=capsys) if r["name"] == "mine"]
        assert row["deviations"] == why
    assert "‡" not in text_board(complete_run(tmp_path / "own"), capsys=capsys)


def test_a_mean_over_trainings_is_greedy_and_names_its_seeds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        make_run(
            tmp_path / seed,
            {"babyai": [SOLVED, NOTHING]},
            name=seed,
            label={"mode": "full", "training_seed": seed},
        )
        for seed in ("5", "6")
    ]
    [row] = [row for row in board(*runs, capsys=capsys) if row["source"] == "run"]
    assert (row["name"], row["deviations"]) == ("full", "")
    assert "seeds 5, 6" in row["notes"]
    assert "‡" not in text_board(*runs, capsys=capsys)


@pytest.mark.slow
def test_a_user_can_declare_what_a_model_was_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned, base = complete_run(tmp_path / "tuned", name="tuned"), complete_run(tmp_path / "base", name="base")
    held_in = ["--held-in", f"{tuned}=babyai"]
    out = text_board(tuned, base, *held_in, capsys=capsys)
    assert re.search(r"tuned < +50\.0 +50\.0\* +50\.0 +50\.0 +50\.0 +50\.0\*", out)
    assert re.search(r"base < +50\.0 +50\.0 +50\.0", out)
    assert re.search(r"--held-in\)?: BabyAI", " ".join(out.split()))
    rows = {r["name"]: r["held_in"] for r in board(tuned, base, *held_in, capsys=capsys)}
    assert (rows["tuned"], rows["base"]) == ("babyai", "")
    rows = {r["name"]: r["held_in"] for r in board(tuned, base, "--held-in", "pddl", capsys=capsys)}
    assert (rows["tuned"], rows["base"]) == ("pddl", "pddl")
    for wrong, why in (("babyia", "'babyai'"), (f"{tmp_path}=babyai", "among the runs")):
        assert main(["leaderboard", str(tuned), "--held-in", wrong]) == 2
        assert why in capsys.readouterr().err


def test_tasks_are_counted_and_samples_stand_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """15 tasks with 4 attempts each are 15 tasks, not 60 of 448; a missing attempt is not hidden by another."""
    four = [[SOLVED] * 4] * 14 + [[SOLVED] * 3]
    folder = make_run(tmp_path / "run", {"babyai": four}, name="mine", samples=4, temperature=1.0)
    out = " ".join(text_board(folder, capsys=capsys).split())
    assert "BabyAI 15/112 tasks x 4 (59 of 60 attempts)" in out
    assert main(["show", str(folder), "--json", str(tmp_path / "summary.json")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"BabyAI +15/112 x 4 ", shown)
    assert "BabyAI: 1 episode" in shown
    entry = json.loads((tmp_path / "summary.json").read_text())["families"]["babyai"]
    counts = ("n", "selected", "expected", "episodes", "episodes_selected")
    assert [entry[name] for name in counts] == [15, 15, 112, 59, 60]
