"""What a policy does beside scoring: errors, getting stuck, recovering, exploring. Formulas: docs/behaviour.md.

`turns` reads one episode turn by turn, `figures` defines each figure as a ratio of two counts, `rows` turns stored runs
into rows with intervals, and two runs into differences. `rows` is imported when a name of it is first used: a run
needs only the others, and not numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalharness.results.behaviour.figures import FIGURES, Figure, Read, episode_columns, turn_columns
from evalharness.results.behaviour.turns import ActionReader, TurnFacts, action_reader, read_turns

if TYPE_CHECKING:
    from evalharness.results.behaviour.rows import (
        ALL,
        Behaving,
        BehaviourRow,
        DifferenceRow,
        RunBehaviour,
        behaviour_rows,
        difference_rows,
        load_behaviour,
    )

__all__ = [
    "ALL",
    "FIGURES",
    "ActionReader",
    "Behaving",
    "BehaviourRow",
    "DifferenceRow",
    "Figure",
    "Read",
    "RunBehaviour",
    "TurnFacts",
    "action_reader",
    "behaviour_rows",
    "difference_rows",
    "episode_columns",
    "load_behaviour",
    "read_turns",
    "turn_columns",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.rows"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
