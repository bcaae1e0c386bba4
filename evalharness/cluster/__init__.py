"""Environment workers on the nodes of a Ray cluster. Ray is imported only for `--cluster`."""

from evalharness.cluster.connect import Workplace, workplace

__all__ = ["Workplace", "workplace"]
