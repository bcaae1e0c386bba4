"""Whether the numbers of a run folder follow from the actions in it: everything is replayed and computed again."""

from evalharness.verify.check import verify
from evalharness.verify.findings import Finding, Verdict

__all__ = ["Finding", "Verdict", "verify"]
