"""What only BabyAI says of an action."""

from __future__ import annotations

from evalharness.envs.babyai import SPEC
from evalharness.protocol.perturb import make_surface


def test_the_reasons_of_a_refusal_are_given_in_the_new_form() -> None:
    surface = make_surface(SPEC, "joined+verbs")
    told = "You cannot go to red ball 1, as there is no path leading to it."
    assert surface.observation(told) == "You cannot walk to red ball1, as there is no path leading to it."
    barrier = "There is a barrier in front of you, you can't move forward."
    assert surface.observation(barrier) == "There is a barrier in front of you, you can't step forward."
