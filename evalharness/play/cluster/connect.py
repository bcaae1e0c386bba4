"""Where the environment workers run: on this machine, or on the nodes of a Ray cluster."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import Distribution, distribution, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalharness.base.errors import InfrastructureError, UserError
from evalharness.envs.base import EnvSpec

if TYPE_CHECKING:
    from evalharness.play.workers.process import Worker


_METADATA = ("METADATA", "PKG-INFO", "entry_points.txt", "top_level.txt")


def _distributions() -> dict[str, tuple[Distribution, set[str]]]:
    """Name -> (distribution, its top-level packages) of the harness and of all that provide an environment."""
    found = {"evalharness": (distribution("evalharness"), {"evalharness"})}
    for point in entry_points(group="evalharness.environments"):
        if point.dist is not None:
            _, packages = found.setdefault(point.dist.name, (point.dist, set()))
            packages.add(point.module.partition(".")[0])
    return dict(sorted(found.items()))


def stage(folder: Path) -> list[str]:
    """Copy everything into `folder`; returns the paths for Ray's `py_modules`."""
    staged = []
    for name, (found, packages) in _distributions().items():
        for package in sorted(packages):
            spec = find_spec(package)
            assert spec is not None
            if spec.submodule_search_locations:
                source = Path(next(iter(spec.submodule_search_locations)))
                target = folder / package
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            else:
                assert spec.origin is not None
                target = Path(shutil.copy(spec.origin, folder))
            staged.append(str(target))
        metadata = folder / f"{re.sub(r'[-_.]+', '_', name)}-{found.version}.dist-info"
        metadata.mkdir()
        for file in _METADATA:
            if text := found.read_text(file):
                (metadata / file).write_text(text, encoding="utf-8")
        staged.append(str(metadata))
    return staged


_JOIN_AGAIN_S = 60.0
"""After a refusal, how long a cluster is asked again. Its head starts a process for each client and waits 30 s for it:
on a busy head that is not enough, and the next try finds much of the work done."""


@dataclass(frozen=True)
class WorkerSite:
    """What the scheduler knows of where workers are."""

    make_worker: Callable[[EnvSpec, Path | None, Path | None], Worker]
    """(environment, data folder, log file) -> a worker that starts at its first call."""
    cores: int | None = None
    """Of all nodes together; None: of this machine."""


@contextmanager
def worker_site(
    address: str | None,
    *,
    on_status: Callable[[str], None] = lambda text: None,
) -> Iterator[WorkerSite]:
    """`address`: None for processes of this machine, `local` for a Ray of our own on it, else a running cluster.

    The cluster is left with the context.
    """
    if address is None:
        from evalharness.play.workers.process import WorkerProcess

        yield WorkerSite(WorkerProcess)
        return
    # Before the import: Ray reads it then.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        ray: Any = import_module("ray")
    except ImportError:
        raise UserError("--cluster needs Ray: pip install 'evalharness[ray]'") from None
    if address != "local":
        _check(address)
    from evalharness.play.cluster.ray_worker import RayWorker

    with ExitStack() as stack:
        if not ray.is_initialized():
            on_status("starting Ray" if address == "local" else f"joining the Ray cluster at {address}")
            # The paths of Ray's Unix sockets in there may have 107 bytes; the folder of sockets alone takes 62.
            base = tempfile.gettempdir() if len(tempfile.gettempdir()) < 20 else "/tmp"
            staging = stack.enter_context(tempfile.TemporaryDirectory(prefix="evalharness-", dir=base))
            stack.callback(ray.shutdown)
            _join(ray, address, Path(staging))
        cores = int(ray.cluster_resources().get("CPU", 1))
        yield WorkerSite(RayWorker, max(1, cores))


def _check(address: str) -> None:
    """Raises UserError when nobody answers there: Ray would try for minutes."""
    where = address.removeprefix("ray://")
    if address == "auto":
        noted = Path("/tmp/ray/ray_current_cluster")  # Ray's own note of the cluster this machine belongs to
        where = os.environ.get("RAY_ADDRESS") or (noted.read_text().strip() if noted.exists() else "")
        if not where:
            raise UserError(
                "--cluster auto: this machine belongs to no Ray cluster; start one with `ray start --head`, join one "
                "with `ray start --address=HOST:6379`, or name one: --cluster ray://HOST:10001"
            )
    host, colon, port = where.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        raise UserError(f"--cluster {address}: write ray://HOST:10001, HOST:6379, auto or local")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=20).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"--cluster {address}: no answer from {host}:{port} ({error}); is the cluster up (`ray status` on its head "
            "node), and may this machine reach it?"
        ) from None


def _init(ray: Any, options: dict[str, Any]) -> None:
    """As `ray.init`, again and again where the head did not get its process for this client to work."""
    until = 0.0
    while True:
        try:
            ray.init(**deepcopy(options))  # Ray writes into them
            return
        except ConnectionAbortedError:
            until = until or time.monotonic() + _JOIN_AGAIN_S
            if time.monotonic() > until:
                raise
            ray.shutdown()
            time.sleep(1)


def _join(ray: Any, address: str, staging: Path) -> None:
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": logging.ERROR}
    # Without a working directory Ray lets workers import from ours, where another `envs` or `evalharness` may lie.
    empty = staging / "empty"
    empty.mkdir()
    options["runtime_env"] = {"working_dir": str(empty)}
    if address == "local":
        options |= {"include_dashboard": False, "_temp_dir": str(staging)}
    else:
        options["runtime_env"]["py_modules"] = stage(staging)
    try:
        _init(ray, options)
    except ImportError as error:  # ray:// needs gRPC, which Ray alone does not bring
        raise UserError(f"--cluster {address}: {error}; pip install 'evalharness[ray]'") from None
    except Exception as error:  # Ray raises bare ones, too
        lines = str(error).strip().splitlines()
        ray.shutdown()
        if address == "local":
            raise InfrastructureError(f"Ray did not start: {error}") from None
        raise UserError(
            f"--cluster {address}: {lines[0] if lines else type(error).__name__}; is the cluster up (`ray status` on "
            "its head node), and are its Ray and Python the same as here?"
        ) from None
