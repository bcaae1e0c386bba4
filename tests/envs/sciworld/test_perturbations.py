"""What only ScienceWorld names this way."""

from __future__ import annotations

from evalharness.envs.sciworld import SPEC
from evalharness.protocol.perturb import make_surface


def test_a_thing_told_apart_by_its_place_keeps_it() -> None:
    surface = make_surface(SPEC, "order")
    said = surface.from_world("pour cup containing blue paint in art studio in jug")
    assert said == "into jug pour cup containing blue paint in art studio"
