"""A real Ray cluster on one machine: each node is a raylet with processes of its own, started by `ray start`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

AUTHENTICATION = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
"""Current Ray starts clusters with a token; whoever joins needs it, too."""


@dataclass
class Node:
    raylet: psutil.Process

    def kill(self) -> None:
        """As when a machine loses its power: every process of the node at once."""
        processes = [self.raylet]
        with contextlib.suppress(psutil.NoSuchProcess):
            processes += self.raylet.children(recursive=True)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def workers(self) -> list[psutil.Process]:
        """Environments' processes. An actor starts them in sessions of their own, as a local run does."""
        found = []
        for process in self.raylet.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "evalharness.play.workers.child" in process.cmdline():
                    found.append(process)
        return found


@dataclass
class RayCluster:
    address: str
    """Of the head: `127.0.0.1:port`."""
    client: str
    """For Ray's client: `ray://127.0.0.1:port`."""
    folder: Path
    """Ray's own files; its name is short, because the paths of Unix sockets have to be."""
    nodes: list[Node] = field(default_factory=list)

    def add_node(self, cores: int, *more: str) -> Node:
        """Nothing of the environments that tests install is visible to a node."""
        before = set(self._raylets())
        environment = {
            key: value for key, value in os.environ.items() if key != "PYTHONPATH"
        } | AUTHENTICATION
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus", str(cores)]
        command += ["--disable-usage-stats", "--log-style", "record", *more]
        done = subprocess.run(
            command,
            env={**environment, "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NodeError(done.stdout + done.stderr)
        [new] = set(self._raylets()) - before
        self.nodes.append(Node(new))
        return self.nodes[-1]

    def _raylets(self) -> list[psutil.Process]:
        return [p for p in self.processes() if p.name() == "raylet"]

    def processes(self) -> list[psutil.Process]:
        """Every process of this cluster: its folder or its address is on the command line."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if (str(self.folder) in line or self.address in line) and process.pid != os.getpid():
                    found.append(process)
        return found

    def end(self) -> None:
        for _ in range(5):
            processes = self.processes()
            for node in self.nodes:
                node.kill()
            for process in processes:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            if not processes:
                break
            time.sleep(0.2)
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class NodeError(Exception):
    """A node did not start: Ray gives it 30 seconds, which a busy machine may exceed."""


def _start(cores: tuple[int, ...]) -> RayCluster:
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    port, client = _free_port(), _free_port()
    cluster = RayCluster(f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}", folder)
    try:
        cluster.add_node(
            cores[0], "--head", "--port", str(port), "--ray-client-server-port", str(client),
            "--temp-dir", str(folder), "--include-dashboard", "false",
        )  # fmt: skip
        for count in cores[1:]:
            cluster.add_node(count, "--address", cluster.address)
    except BaseException:
        cluster.end()
        raise
    return cluster


@contextlib.contextmanager
def ray_cluster(cores: tuple[int, ...]) -> Iterator[RayCluster]:
    """Cores of each node; the first is the head."""
    for tries in range(3):
        try:
            cluster = _start(cores)
        except NodeError:
            if tries == 2:
                raise
        else:
            break
    try:
        yield cluster
    finally:
        cluster.end()
