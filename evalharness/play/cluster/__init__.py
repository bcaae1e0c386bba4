"""Environment workers on the nodes of a Ray cluster. Ray is imported only for `--cluster`."""

from evalharness.play.cluster.connect import WorkerSite, worker_site

__all__ = ["WorkerSite", "worker_site"]
