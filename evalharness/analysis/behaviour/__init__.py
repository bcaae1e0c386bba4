"""What a policy does beside scoring: errors, getting stuck, recovering, exploring. Formulas: docs/behaviour.md.

`turns` reads one episode turn by turn, `figures` defines each figure as a ratio of two counts, `rows` turns stored runs
into rows with intervals, and two runs into differences.
"""

from evalharness.analysis.behaviour.figures import FIGURES, Figure, Read, episode_columns, turn_columns
from evalharness.analysis.behaviour.rows import (
    ALL,
    Behaving,
    BehaviourRow,
    DifferenceRow,
    RunBehaviour,
    behaviour_rows,
    difference_rows,
    load_behaviour,
)
from evalharness.analysis.behaviour.turns import ActionReader, TurnFacts, action_reader, read_turns

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
