"""Probes of models that were trained alike but for their seed: means over tasks and trainings, and their intervals."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from evalharness.base.errors import UserError
from evalharness.records.files import SUMMARY
from evalharness.stats.intervals import bootstrap_mean
from evalharness.training.probe.compared import Replies, compared, read_replies
from evalharness.training.probe.probing import REPLIES


def replies(shares: Mapping[str, float]) -> Replies:
    return {task: {"another": share, "valid": share / 2, "solvable": 0.0} for task, share in shares.items()}


def trainings(rates: Sequence[float], tasks: int, seed: int) -> list[Replies]:
    """One a rate: as many tasks of each of two families, each with four prefixes."""
    rng = np.random.default_rng(seed)
    names = [f"{family} 9000/{family}/open/{n:03d}" for family in ("babyai", "pddl") for n in range(tasks)]
    return [replies({name: rng.binomial(4, rate) / 4 for name in names}) for rate in rates]


def test_a_rate_is_the_mean_over_tasks_and_trainings() -> None:
    one, other = replies({"babyai a": 1.0, "babyai b": 0.5}), replies({"babyai a": 0.5, "babyai b": 0.0})
    row = compared({"full": [one, other]})[0]
    assert (row.name, row.trainings, row.tasks, row.differences) == ("full", 2, 2, None)
    assert [row.figures[name].rate for name in ("another", "valid", "solvable")] == [0.5, 0.25, 0.0]
    alone = compared({"full": [one]})[0].figures["another"]
    assert alone.ci95 == bootstrap_mean([1.0, 0.5])


def test_seeds_that_differ_widen_the_interval() -> None:
    def width(rates: Sequence[float]) -> float:
        low, high = compared({"full": trainings(rates, 40, 1)})[0].figures["another"].ci95
        assert low < 0.5 < high
        return high - low

    assert width((0.3, 0.5, 0.7)) > 2 * width((0.5, 0.5, 0.5))


def test_a_difference_is_to_the_first_model_on_the_tasks_that_both_have() -> None:
    first, second = trainings((0.8, 0.8, 0.8), 40, 2), trainings((0.4, 0.4, 0.4), 40, 3)
    for more in (first, second):
        more[0] = {
            **more[0],
            f"babyai only here {id(more)}": dict.fromkeys(("another", "valid", "solvable"), 1.0),
        }
    rows = compared({"full": first, "no_refine_loss": second})
    assert [row.tasks for row in rows] == [80, 80]
    assert rows[1].differences is not None
    found = rows[1].differences["another"]
    assert found.rate == pytest.approx(rows[1].figures["another"].rate - rows[0].figures["another"].rate)
    assert found.ci95[0] < found.rate < found.ci95[1] < 0
    equal = compared({"a": first, "b": first})[1].differences
    assert equal is not None
    assert equal["another"].rate == 0


def test_models_without_a_task_in_common_are_refused() -> None:
    with pytest.raises(UserError, match="no task in common"):
        compared({"full": [replies({"babyai a": 1.0}), replies({"babyai b": 1.0})]})


def test_the_prefixes_of_a_task_count_together(tmp_path: Path) -> None:
    lines = [
        {
            "key": f"k{n}",
            "family": "babyai",
            "task": "9000/babyai/open/001",
            "verdict": {"another": n > 0, "valid": True, "solvable": False},
        }
        for n in range(4)
    ]
    (tmp_path / REPLIES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / SUMMARY).write_text(json.dumps({"prefixes": 4, "left": 0}))
    expected = {"another": 0.75, "valid": 1.0, "solvable": 0.0}
    assert read_replies(tmp_path) == {"babyai 9000/babyai/open/001": expected}
    (tmp_path / REPLIES).write_text("[1]\n")
    with pytest.raises(UserError, match="line 1"):
        read_replies(tmp_path)
