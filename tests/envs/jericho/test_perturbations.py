"""What only Jericho's games do with an action's words."""

from __future__ import annotations

from evalharness.envs.jericho import SPEC
from evalharness.protocol.perturb import UNKNOWN_WORD, make_surface


def test_what_a_game_of_jericho_does_not_read_is_no_part_of_a_name() -> None:
    surface = make_surface(SPEC, "order")
    assert surface.to_world("with key unlock door.") == "unlock door with key."
    assert surface.to_world("with key unlock door, then open it") == "unlock door with key, then open it"
    assert surface.to_world("unlock door with key. open it") == UNKNOWN_WORD
