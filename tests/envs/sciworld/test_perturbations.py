"""What only ScienceWorld names this way."""

from __future__ import annotations

from evalharness.envs.sciworld import SPEC
from evalharness.protocol.perturb import PlayedSurface


def test_a_thing_told_apart_by_its_place_keeps_it() -> None:
    surface = PlayedSurface(SPEC, "order")
    said = surface.action("pour cup containing blue paint in art studio in jug")
    assert said == "into jug pour cup containing blue paint in art studio"
