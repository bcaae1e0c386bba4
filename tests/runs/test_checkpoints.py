"""All checkpoints of a training run as one study: found, played, continued, watched, and judged."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapters import make_adapter, matrices, write_tensors
from command_line import evalharness
from empty_checkpoint import make_empty_checkpoint
from fake_vllm import make_fake_vllm, set_skill
from made_runs import make_run

from evalharness import stats
from evalharness.base.errors import UserError
from evalharness.cli import main
from evalharness.config import RunConfig
from evalharness.records.store import read_episodes
from evalharness.results.checkpoints import training_of
from evalharness.results.comparison import compare_runs
from evalharness.results.score import pooled_score
from evalharness.results.scored_run import load_scored_run
from evalharness.results.terminal.checkpoints import winner_lines
from evalharness.runs.checkpoints import find_checkpoints, runs_of, select_seed, wait_for_new
from evalharness.runs.study_file import run_folders

SKILLS = ("", "north", "north east south west", "north east")
QUICK = ("--suite", "open", "--tasks", "compass", "--max-turns", 3, "--concurrency", 4)


def full(folder: Path, name: str, skill: str = "") -> Path:
    return set_skill(make_empty_checkpoint(folder / name), skill)


def training(tmp_path: Path, names: tuple[str, ...]) -> Path:
    folder = tmp_path / "training"
    folder.mkdir()
    for name, skill in zip(names, SKILLS, strict=False):
        full(folder, name, skill)
    return folder


def adapters(tmp_path: Path, count: int = 3) -> tuple[Path, Path]:
    """(base, folder of adapters)"""
    base = make_empty_checkpoint(tmp_path / "base")
    write_tensors(base / "model.safetensors", {"model.layers.0.q_proj.weight": np.zeros((6, 4), np.float32)})
    folder = tmp_path / "adapters"
    folder.mkdir()
    for i in range(count):
        tensors = matrices({"model.layers.0.q_proj": (6, 4)}, 2, seed=i)
        set_skill(make_adapter(folder / f"checkpoint-{10 * (i + 1)}", tensors, rank=2, base=base), SKILLS[i])
    return base, folder


def play(environment: dict[str, str], tmp_path: Path, folder: Path, *more: object) -> Any:
    """The command with a stand-in for vLLM; its starts are in `starts`."""
    program = make_fake_vllm(tmp_path / "bin")
    variables = {**environment, "FAKE_VLLM_LOG": str(tmp_path / "starts")}
    options = (*QUICK, "--vllm", program, "-o", tmp_path / "study", *more)
    return evalharness(variables, "checkpoints", folder, *options)


def starts(tmp_path: Path) -> list[str]:
    path = tmp_path / "starts"
    return path.read_text().splitlines() if path.exists() else []


def result(tmp_path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((tmp_path / "result.json").read_text())
    return data


def test_checkpoints_are_found_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = training(tmp_path, ("checkpoint-1000", "checkpoint-90", "checkpoint-200"))
    (folder / "runs").mkdir()
    (folder / "checkpoint-last").mkdir()
    found = find_checkpoints(folder)
    assert [(c.name, c.axis, c.number) for c in found.checkpoints] == [
        ("checkpoint-90", "step", 90),
        ("checkpoint-200", "step", 200),
        ("checkpoint-1000", "step", 1000),
    ]


def test_a_checkpoint_that_is_still_being_written_is_told_and_left_out(tmp_path: Path) -> None:
    folder = training(tmp_path, ("step_1", "step_2"))
    weights = folder / "step_2" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-2])
    found = find_checkpoints(folder)
    assert [c.name for c in found.checkpoints] == ["step_1"]
    assert "cut short" in found.incomplete["step_2"]


def test_a_watch_may_begin_before_the_first_checkpoint(tmp_path: Path) -> None:
    assert find_checkpoints(tmp_path, none_yet=True).checkpoints == ()


def test_steps_and_epochs_are_never_mixed(tmp_path: Path) -> None:
    folder = training(tmp_path, ("checkpoint-10", "epoch_1"))
    with pytest.raises(UserError, match=r"several kinds.*--only 'checkpoint-\*'"):
        find_checkpoints(folder)
    assert [c.name for c in find_checkpoints(folder, "epoch_*").checkpoints] == ["epoch_1"]
    with pytest.raises(UserError, match="no checkpoint-N"):
        find_checkpoints(folder, "step_*")


def test_adapters_are_runs_beside_their_base_and_full_weights_are_not(tmp_path: Path) -> None:
    base, folder = adapters(tmp_path, 1)
    config = RunConfig.of(model=str(folder), suite="open")
    found = find_checkpoints(folder).checkpoints
    [run] = runs_of(found, config, base=str(base), merge=False, select_seed=None).values()
    assert (run.policy.model, run.policy.lora, run.policy.lora_serve) == (
        str(base),
        folder / "checkpoint-10",
        True,
    )
    assert run.execution.label == {"step": "10"}
    [alone] = runs_of(found, config, base=None, merge=True, select_seed=None).values()
    assert (alone.policy.model, alone.policy.lora, alone.policy.lora_serve) == (
        str(folder / "checkpoint-10"),
        None,
        False,
    )


def test_the_suite_that_is_reported_cannot_choose(tmp_path: Path) -> None:
    config = RunConfig.of(model="x", suite="open", suite_seed=3)
    assert select_seed("open:4", config.selection) == 4
    for text, complaint in (("open:3", "is the suite that is reported"), ("agentboard", "give open:SEED")):
        with pytest.raises(UserError, match=complaint):
            select_seed(text, config.selection)


def test_a_watch_ends_when_nothing_new_has_come_for_long_enough() -> None:
    now, looks = [0.0], [{"a"}, {"a"}, {"a", "b"}]

    def pause(seconds: float) -> None:
        now[0] += seconds

    assert wait_for_new(lambda: looks.pop(0), {"a"}, 10, pause=pause, clock=lambda: now[0])
    assert now[0] == 40
    assert not wait_for_new(lambda: {"a"}, {"a"}, 2, pause=pause, clock=lambda: now[0])
    assert now[0] == 160


def test_full_weights_each_get_a_server_and_the_study_goes_on_where_it_was(
    environment: dict[str, str], tmp_path: Path
) -> None:
    folder = training(tmp_path, ("checkpoint-10", "checkpoint-20", "checkpoint-100"))
    more = ("--json", tmp_path / "result.json", "--csv", tmp_path / "result.csv")
    done = play(environment, tmp_path, folder, *more)
    assert done.returncode == 0, done.stderr
    assert starts(tmp_path) == ["start checkpoint-10", "start checkpoint-20", "start checkpoint-100"]
    found = result(tmp_path)
    assert [(p["name"], p["x"], p["rates"]["all"]["success"]) for p in found["points"]] == [
        ("checkpoint-10", 10, 0.0),
        ("checkpoint-20", 20, 0.25),
        ("checkpoint-100", 100, 1.0),
    ]
    assert found["best"] == "checkpoint-100"
    assert (found["axis"], found["score"]) == ("step", "all")
    last = found["points"][-1]["against_first"]["success"]
    assert last["p"] == pytest.approx(stats.mcnemar_midp(20, 0))
    assert last["p_holm"] >= last["p"]
    assert done.stdout.startswith("best by progress, of 3: checkpoint-100, ")
    rows = list(csv.DictReader((tmp_path / "result.csv").open()))
    assert {row["checkpoint"] for row in rows} == {"checkpoint-10", "checkpoint-20", "checkpoint-100"}
    for suffix in ("png", "svg", "csv"):
        assert (tmp_path / "study" / f"checkpoints.{suffix}").stat().st_size > 100

    full(folder, "checkpoint-200", "north east")
    again = play(environment, tmp_path, folder, *more)
    assert again.returncode == 0, again.stderr
    assert starts(tmp_path)[3:] == ["start checkpoint-200"]  # the others are finished
    assert [p["x"] for p in result(tmp_path)["points"]] == [10, 20, 100, 200]


def test_the_best_of_a_subset_is_that_of_the_estimate_which_is_tested_as_compare_does(tmp_path: Path) -> None:
    """`b` solves more of the tasks that were played, and `a` those that stand for more."""
    stands_for = {
        f"{family}/agentboard/{i:03d}": n for family, n in (("babyai", 9), ("pddl", 2)) for i in range(6)
    }
    runs = {}
    for name, solved in (("a", (5, 0)), ("b", (2, 6))):
        outcomes = {
            family: [(i < k, float(i < k)) for i in range(6)]
            for family, k in zip(("babyai", "pddl"), solved, strict=True)
        }
        run = load_scored_run(make_run(tmp_path / name, outcomes))
        runs[name] = replace(run, manifest=run.manifest.model_copy(update={"subset": stands_for}))
    found = training_of({"a": (1, runs["a"]), "b": (2, runs["b"])}, model="m", axis="step", by="success")
    assert found.best == "a"
    assert found.points[0].rates["all"]["success"] == pytest.approx(45 / 66)
    [compared] = compare_runs(list(runs.values()))
    [expected] = [
        d for d in compared.differences if (d.family, d.measure) == ("held_out_estimate", "success")
    ]
    assert found.points[1].against_first["success"].p == expected.p


def test_the_answer_counts_the_checkpoints_that_were_chosen_among(tmp_path: Path) -> None:
    runs = {
        name: (i, load_scored_run(make_run(tmp_path / name, {"babyai": [(i > 0, 1.0), (True, 1.0)]})))
        for i, name in enumerate("abc")
    }
    found = training_of(runs, model="m", axis="step", by="success", select={n: runs[n][1] for n in "ab"})
    assert winner_lines(found)[0].startswith("best by success, of 2: ")


def test_the_score_of_all_tasks_has_the_interval_that_show_gives_it(tmp_path: Path) -> None:
    run = load_scored_run(make_run(tmp_path / "a", {"babyai": [(True, 1.0)] * 4, "pddl": [(False, 0.5)] * 5}))
    [point] = training_of({"a": (1, run)}, model="m", axis="step", by="success").points
    assert point.ci95["all"]["success"] == pooled_score(run.by_family).success_rate_ci95


def test_adapters_share_one_server_of_their_base(environment: dict[str, str], tmp_path: Path) -> None:
    _, folder = adapters(tmp_path)
    done = play(environment, tmp_path, folder, "--json", tmp_path / "result.json", "--by", "success")
    assert done.returncode == 0, done.stderr
    assert starts(tmp_path) == ["start base", *(f"load checkpoint-{n}" for n in (10, 20, 30))]
    rates = [point["rates"]["all"]["success"] for point in result(tmp_path)["points"]]
    assert rates == [0.0, 0.25, 1.0]
    names = {
        turn.reply
        for episode in read_episodes(tmp_path / "study" / "checkpoint-30")
        for turn in episode.turns
    }
    assert names == {"Thought: on\nAction: turn right"}


def test_the_best_is_chosen_on_another_suite_than_is_reported(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """Both suites of Compass have the same words, so the choice is the same; what counts is who is told to have made
    it, and that each checkpoint is loaded once for both."""
    folder = training(tmp_path, ("epoch_1", "epoch_2", "epoch_3"))
    more = ("--json", tmp_path / "result.json", "--select-on", "open:4")
    done = play(environment, tmp_path, folder, *more)
    assert done.returncode == 0, done.stderr
    assert starts(tmp_path) == ["start epoch_1", "start epoch_2", "start epoch_3"]
    found = result(tmp_path)
    assert (found["best"], found["selected_on"], found["suite"]) == ("epoch_3", "open, seed 4", "open")
    assert "open, seed 4" in done.stdout
    assert "optimistic" not in done.stdout
    assert (tmp_path / "study" / "epoch_3.select" / "manifest.json").exists()
    folders = [folder.name for folder in run_folders([tmp_path / "study"])]
    assert folders == ["epoch_1", "epoch_2", "epoch_3"]  # what only chooses is no result


def test_a_watch_takes_in_what_has_been_written_meanwhile(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """A watch of no minutes looks once more at the end."""
    folder = training(tmp_path, ("step_1", "step_2"))
    done = play(environment, tmp_path, folder, "--watch", 0, "--json", tmp_path / "result.json")
    assert done.returncode == 0, done.stderr
    assert "waiting" in done.stderr
    assert [p["name"] for p in result(tmp_path)["points"]] == ["step_1", "step_2"]


def test_checkpoints_of_scripts_and_empty_folders_are_refused(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for folder, complaint in (
        ("oracle", "not a folder of checkpoints"),
        (tmp_path / "empty", "holds no checkpoint-N"),
        (tmp_path / "nowhere", "No such file"),
    ):
        done = play(environment, tmp_path, folder)  # type: ignore[arg-type]
        assert done.returncode == 2, done.stderr
        assert complaint in done.stderr


def test_a_watch_of_no_length_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", str(tmp_path), "--watch", "-1"]) == 2
    assert "--watch" in capsys.readouterr().err
