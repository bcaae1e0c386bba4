"""Environment workers on the nodes of a Ray cluster. Without `--cluster` nothing in here is imported."""

from evalharness.cluster.connect import Workplace, workplace

__all__ = ["Workplace", "workplace"]
