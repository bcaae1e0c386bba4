"""`--deterministic`: what the device allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.base.errors import UserError
from evalharness.config import RunConfig
from evalharness.models.resolve import prepare


def test_a_run_for_a_cpu_server_is_refused_before_anything_starts(
    cpu_environment: Path, tmp_path: Path, home: Path
) -> None:
    from empty_checkpoint import make_empty_checkpoint

    checkpoint = make_empty_checkpoint(tmp_path / "ckpt")
    config = RunConfig.of(model=str(checkpoint), vllm=str(cpu_environment), deterministic=True)
    with pytest.raises(UserError, match="CPU"):
        prepare(config.policy, {}, lambda text: None)


def test_it_is_part_of_what_a_run_is() -> None:
    plain, alike = RunConfig.of(model="ckpt"), RunConfig.of(model="ckpt", deterministic=True)
    assert alike.identity()["deterministic"] is True
    assert "deterministic" not in plain.identity()
    assert plain.folder() != alike.folder()
    with pytest.raises(UserError, match="VLLM_BATCH_INVARIANT=1"):
        RunConfig.of(model="http://127.0.0.1:1/v1", deterministic=True)
