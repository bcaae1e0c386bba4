"""How many conversations are computed at a time, by the settings and the processes that there are."""

from __future__ import annotations

from typing import Any

import pytest

from evalharness.training.tune.trainer.choices import RefusedError, micro_batch


def chosen(processes: int = 1, *, cuda: bool = False, **other: Any) -> int:
    return micro_batch({"batch": 12, "micro_batch": 0, **other}, processes, cuda=cuda)


def test_a_micro_batch_divides_a_processs_part_of_the_batch() -> None:
    assert chosen() == chosen(2) == 1
    assert chosen(cuda=True) == 4
    assert chosen(2, cuda=True) == 3
    assert chosen(2, micro_batch=2) == 2


@pytest.mark.parametrize("other", [{"batch": 3}, {"micro_batch": 4}, {"batch": 1}])
def test_what_cannot_be_divided_over_the_processes_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        chosen(2, **other)
