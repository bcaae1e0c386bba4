"""The difficulty of an open task: the amount of search behind its plan."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from evalharness.envs.base import Difficulty


def search_bits(choices: Iterable[int]) -> float:
    """Return the bits that select a plan among all ways to act: the sum of log2(valid actions) over its turns.

    It grows with the length of the plan and with the branching along it. A policy that picks uniformly among the valid
    actions follows this plan with probability 2 ** -bits.
    """
    return sum(log2(number) for number in choices)


def difficulty(bits: float, hard_from: float) -> Difficulty:
    """Return the difficulty. Each family has its own `hard_from`, because branching differs between families."""
    return "hard" if bits >= hard_from else "easy"
