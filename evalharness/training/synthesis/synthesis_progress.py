"""What a synthesis has done so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalharness.models.work import WorkProgress
from evalharness.training.synthesis.tally import Tally


@dataclass
class SynthesisProgress(WorkProgress):
    tally: Tally = field(default_factory=Tally)
    """Of all finished personas, those of earlier sessions included."""

    def details(self) -> list[str]:
        counted = self.tally
        at = ", ".join(f"{counted.passed_at[call]} at call {call}" for call in sorted(counted.passed_at))
        parts = [f"passed {counted.passed}" + (f" ({at})" if at else "")]
        if counted.rejected:
            why = ", ".join(f"{signal} {count}" for signal, count in counted.rejected.most_common())
            parts.append(f"rejected {counted.rejected.total()} ({why})")
        return parts
