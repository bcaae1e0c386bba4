"""How progress, in quarters, may be distributed over the tasks of a family."""

from __future__ import annotations

import numpy as np

PROGRESS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
SHAPES = {
    "even": (0.2, 0.2, 0.2, 0.2, 0.2),
    "mostly low": (0.4, 0.3, 0.15, 0.1, 0.05),
    "mostly high": (0.05, 0.1, 0.15, 0.2, 0.5),
    "all or nothing": (0.5, 0.0, 0.0, 0.0, 0.5),
    "70 % at 0": (0.7, 0.2, 0.05, 0.03, 0.02),
    "90 % at 0": (0.9, 0.05, 0.03, 0.02, 0.0),
    "70 % at 1": (0.02, 0.03, 0.05, 0.2, 0.7),
}
