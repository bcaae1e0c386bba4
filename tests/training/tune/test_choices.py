"""How a job is computed, by the settings and the processes that there are."""

from __future__ import annotations

from typing import Any

import pytest

from evalharness.training.tune.trainer.choices import RefusedError, choose

JOB = {
    "batch": 12, "micro_batch": 0, "share_prefix": None, "packing": False, "gradient_checkpointing": False,
    "launched": False,
}  # fmt: skip


def chosen(processes: int = 1, *, cuda: bool = False, **other: Any) -> dict[str, Any]:
    return choose({**JOB, **other}, processes, cuda=cuda)


def test_one_process_shares_beginnings_and_several_do_not() -> None:
    assert chosen()["share_prefix"]
    assert chosen()["loss"] == "by conversation"
    assert chosen(share_prefix=False)["loss"] == "by conversation"
    assert not chosen(2, launched=True)["share_prefix"]
    assert chosen(2, launched=True)["loss"] == "selected"
    # DeepSpeed in one process still wants to see every step of a way back.
    assert chosen(1, launched=True)["loss"] == "selected"
    assert chosen(2, launched=True, cuda=True)["loss"] == "trl"
    assert not chosen(packing=True)["share_prefix"]
    assert chosen(cuda=True, gradient_checkpointing=True)["loss"] == "trl"


def test_steps_hold_the_same_conversations_however_many_processes_there_are() -> None:
    one, two = chosen(), chosen(2, launched=True)
    assert one["micro_batch"] == 6
    assert 12 // 2 % two["micro_batch"] == 0


@pytest.mark.parametrize("other", [{"batch": 3}, {"micro_batch": 4}, {"batch": 1}, {"share_prefix": True}])
def test_what_cannot_be_divided_over_the_processes_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        chosen(2, launched=True, **other)
