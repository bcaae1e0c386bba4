"""What a training is unless said, what the paper's is, and what is refused before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from evalharness.base.errors import UserError
from evalharness.training.tune.settings import Settings, make_settings


def test_the_papers_settings_are_those_of_its_appendix() -> None:
    paper = make_settings("paper", {})
    assert (paper.method, paper.lr, paper.schedule, paper.warmup) == ("full", 5e-6, "cosine", 0)
    assert (paper.batch, paper.epochs, paper.max_length) == (64, 10, 8192)


def test_what_is_given_counts_over_the_preset() -> None:
    assert make_settings("paper", {"batch": 16, "lr": None}).batch == 16
    assert make_settings("small", {}) == Settings()
    assert make_settings("small", {"method": "full"}).lr < Settings().lr
    assert make_settings("small", {"lora_rank": 8}).lora_alpha == 16


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lr": 0.0}, "--lr must be above 0"),
        ({"lr": float("nan")}, "--lr must be above 0"),
        ({"batch": 0}, "--batch"),
        ({"warmup": 1.0}, "--warmup"),
        ({"batch": 8, "micro_batch": 3}, "--micro-batch 3"),
        ({"max_steps": -1}, "--max-steps must be 0 or more"),
    ],
)
def test_impossible_settings_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_settings("small", given)
