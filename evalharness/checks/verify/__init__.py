"""Check whether the numbers of a run folder follow from its actions: replay the actions and recompute the numbers."""

from evalharness.checks.verify.check import verify
from evalharness.checks.verify.findings import Finding, FolderCheck

__all__ = ["Finding", "FolderCheck", "verify"]
