"""Whether the numbers of a run folder follow from the actions in it: everything is replayed and computed again."""

from evalharness.checks.verify.check import verify
from evalharness.checks.verify.findings import Finding, FolderCheck

__all__ = ["Finding", "FolderCheck", "verify"]
