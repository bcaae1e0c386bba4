"""Before a training starts: what it will take, and whether a folder's training may go on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from adapters import write_tensors
from empty_checkpoint import make_empty_checkpoint

from evalharness.base.errors import UserError
from evalharness.models.serving.checkpoint import check_checkpoint
from evalharness.training.tune.data import DataCounts
from evalharness.training.tune.estimate import Estimate, estimate, require_room
from evalharness.training.tune.install import (
    TuneInstall,
    install_tune,
    read_tune_install,
    require_tune_install,
    uninstall_tune,
)
from evalharness.training.tune.memory import Memory, MemoryUse
from evalharness.training.tune.plan import MANIFEST, count_steps, plan
from evalharness.training.tune.progress import TuningProgress
from evalharness.training.tune.settings import make_settings
from evalharness.training.tune.start import StartingModel
from evalharness.training.tune.training import LOG, _continue_log, find_latest_checkpoint, lock_folder

BASE = {
    "model.embed_tokens.weight": (100, 8),
    "model.layers.0.q_proj.weight": (8, 8),
    "model.norm.weight": (8,),
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = make_empty_checkpoint(tmp_path / "base")
    write_tensors(
        folder / "model.safetensors", {name: np.zeros(shape, np.float32) for name, shape in BASE.items()}
    )
    return folder


@pytest.mark.parametrize(("method", "trained"), [("lora", 4 * 16), ("full", 872)])
def test_what_is_trained_is_counted_from_the_weights_headers(base: Path, method: str, trained: int) -> None:
    settings = make_settings("small", {"method": method, "lora_rank": 4})
    use = MemoryUse(settings, 50, 10, bf16=False, gpu=False)
    found = estimate(check_checkpoint(base), use, checkpoints=3)
    assert (found.parameters, found.trained_parameters) == (872, trained)
    # Weight and Adam's two averages in float32, three times; the finished model once.
    assert found.disk_bytes == 3 * 12 * trained + 4 * trained


@pytest.mark.parametrize(
    ("given", "steps"),
    [({"epochs": 2.0}, 6), ({"max_steps": 5}, 5)],
)
def test_steps_follow_from_epochs_or_are_given(given: dict[str, float], steps: int) -> None:
    settings = make_settings("small", {"batch": 4, **given})
    assert count_steps(settings, DataCounts(rows=9)) == steps


@pytest.mark.parametrize(
    ("memory", "disk", "said"), [(10**18, 0, "this machine has.*--max-length"), (0, 10**18, "--keep N")]
)
def test_what_cannot_fit_is_refused(tmp_path: Path, memory: int, disk: int, said: str) -> None:
    parts = Memory(memory, 0, 0, 0, 0, 0)
    with pytest.raises(UserError, match=said):
        require_room(Estimate(1, 1, parts, 0, disk), tmp_path, gpu=False)
    nothing = Memory(0, 0, 0, 0, 0, 0)
    assert require_room(Estimate(1, 1, nothing, 0, 0), tmp_path, gpu=False) is None


def test_a_checkpoint_that_a_kill_left_half_written_is_removed(tmp_path: Path) -> None:
    for number in (5, 10, 15):
        (tmp_path / f"checkpoint-{number}").mkdir()
        if number != 15:
            (tmp_path / f"checkpoint-{number}" / "evalharness_tune.json").write_text("{}")
    (tmp_path / "checkpoint-best").mkdir()
    assert find_latest_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
    assert not (tmp_path / "checkpoint-15").exists()
    assert (tmp_path / "checkpoint-best").exists()


def test_a_folder_is_trained_by_one_process(tmp_path: Path) -> None:
    with (
        lock_folder(tmp_path),
        pytest.raises(UserError, match="training"),
        lock_folder(tmp_path),
    ):
        pass


def test_another_training_is_not_gone_on_with(base: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("")
    out = tmp_path / "out"
    out.mkdir()
    install = TuneInstall(environment=tmp_path, server=tmp_path, versions={}, installed_at="", seconds=0.0)
    manifest = {
        "kind": "evalharness tuning", "status": "started",
        "identity": {"base_sha256": "", "data_sha256": [], "dtype": "float32", "settings": {"lr": 1e-9}},
    }  # fmt: skip
    (out / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(
        UserError, match=r"another training \(base_sha256; data_sha256.*lr 1e-09 there, 0.0005 now"
    ):
        plan(
            StartingModel(base),
            [data],
            out,
            make_settings("small", {"max_length": 64}),
            install,
            dtype="float32",
        )
    (out / MANIFEST).write_text(json.dumps({**manifest, "identity": {"settings": None}}))
    with pytest.raises(UserError, match=r"out/manifest\.json"):
        plan(StartingModel(base), [data], out, make_settings("small", {"max_length": 64}), install)
    (out / MANIFEST).unlink()
    (out / "config.json").write_text("{}")
    with pytest.raises(UserError, match="already"):
        plan(StartingModel(base), [data], out, make_settings("small", {"max_length": 64}), install)


def test_a_log_is_continued_from_the_last_checkpoint_and_damage_in_it_is_named(tmp_path: Path) -> None:
    log = tmp_path / LOG
    step = {"steps": 9, "loss": 2.0, "tokens": 10, "trained_tokens": 4, "seconds": 1.5}
    lines = [json.dumps({"step": number, **step}) for number in (1, 2, 3)]
    log.write_text("\n".join([*lines, lines[0][:20]]))
    progress = TuningProgress()
    _continue_log(tmp_path, 2, progress)
    assert (progress.step, progress.tokens) == (2, 20)
    assert log.read_text().splitlines() == lines[:2]
    for damage in ("5", '{"step": 1}', '{"step": 1, "tokens": []'):
        log.write_text(f"{lines[0]}\n{damage}\n{lines[1]}\n")
        with pytest.raises(UserError, match="line 2"):
            _continue_log(tmp_path, 2, TuningProgress())


def test_without_a_training_environment_the_command_that_makes_one_is_said(clean_home: Path) -> None:
    assert read_tune_install() is None
    with pytest.raises(UserError, match="evalharness tune install"):
        require_tune_install()
    assert not uninstall_tune()
    with pytest.raises(UserError, match="evalharness server install"):
        install_tune(on_line=lambda line: None)


def test_an_environment_over_a_server_that_is_gone_is_none(tmp_path: Path) -> None:
    environment, server = tmp_path / "env-1", tmp_path / "server" / "python"
    for python in (environment / "bin" / "python", server):
        python.parent.mkdir(parents=True)
        python.touch()
    record = {
        "environment": "env-1", "server": str(server), "versions": {"trl": "1"}, "installed_at": "", "seconds": 1.0,
    }  # fmt: skip
    (tmp_path / "tune.json").write_text(json.dumps(record))
    assert read_tune_install(tmp_path) is not None
    server.unlink()
    assert read_tune_install(tmp_path) is None
