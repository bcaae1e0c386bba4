"""Training data: refinement trajectories written by a model or grounded in real worlds, and what trainers take."""

from evalharness.training.synthesis.outcome import summarize
from evalharness.training.synthesis.personas import read_personas
from evalharness.training.synthesis.show import record_lines, verification_table
from evalharness.training.synthesis.synthesis import Synthesis, make_scripts, make_trajectories
from evalharness.training.synthesis.synthesis_store import finished
from evalharness.training.synthesis.verify import Readings, verify_script, verify_trajectory

__all__ = [
    "Readings",
    "Synthesis",
    "finished",
    "make_scripts",
    "make_trajectories",
    "read_personas",
    "record_lines",
    "summarize",
    "verification_table",
    "verify_script",
    "verify_trajectory",
]
