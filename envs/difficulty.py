"""How hard an open task is: how much search its plan stands for."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from evalharness.envs.base import Difficulty


def search_bits(choices: Iterable[int]) -> float:
    """Bits that single out a plan among all the ways to act: the sum of log2(valid actions) over its turns.

    Grows with the length of the plan and with the branching on its way. A policy that picks uniformly among the
    valid actions follows this very plan with probability 2 ** -bits.
    """
    return sum(log2(number) for number in choices)


def difficulty(bits: float, hard_from: float) -> Difficulty:
    """Each family has its own `hard_from`: families differ more in branching than tasks of one do."""
    return "hard" if bits >= hard_from else "easy"
