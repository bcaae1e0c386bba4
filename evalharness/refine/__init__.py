"""Training data: refinement trajectories written by a model or grounded in real worlds, and what trainers take."""

from evalharness.engine.asking import TokenPrices
from evalharness.refine.live import watch_synthesis
from evalharness.refine.outcome import summarize
from evalharness.refine.personas import read_personas
from evalharness.refine.show import record_lines, verification_table
from evalharness.refine.synthesis import Made, Synthesis, make_scripts, make_trajectories
from evalharness.refine.synthesis_store import finished
from evalharness.refine.verify import Readings, verify_script, verify_trajectory

__all__ = [
    "Made",
    "Readings",
    "Synthesis",
    "TokenPrices",
    "finished",
    "make_scripts",
    "make_trajectories",
    "read_personas",
    "record_lines",
    "summarize",
    "verification_table",
    "verify_script",
    "verify_trajectory",
    "watch_synthesis",
]
