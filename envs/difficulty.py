"""Measure the difficulty of an open task by the amount of search behind its plan."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from evalharness.envs.base import Difficulty


def search_bits(choices: Iterable[int]) -> float:
    """Return the sum of log2(number of valid actions) over the turns of a plan.

    It grows with the length of the plan and with the number of choices. A policy that chooses uniformly among the valid
    actions follows this plan with probability 2 ** -bits.
    """
    return sum(log2(number) for number in choices)


def difficulty(bits: float, hard_from: float) -> Difficulty:
    """Return the difficulty. Each family has its own `hard_from`, because families differ in the number of choices."""
    return "hard" if bits >= hard_from else "easy"
