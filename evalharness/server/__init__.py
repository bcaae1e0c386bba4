"""The vLLM server: installed in an environment of its own, found, started for one model, ended with us."""

from evalharness.server.checkpoint import (
    CheckpointError,
    CheckpointInfo,
    check_checkpoint,
)
from evalharness.server.demo import ensure_demo
from evalharness.server.find import ServerCommand, ServerNotFound, find_server, server_candidates
from evalharness.server.install import ServerInstallError, install_server
from evalharness.server.managed import ManagedServer, ServerStartError
from evalharness.server.private import ServerInstall

__all__ = [
    "CheckpointError",
    "CheckpointInfo",
    "ManagedServer",
    "ServerCommand",
    "ServerInstall",
    "ServerInstallError",
    "ServerNotFound",
    "ServerStartError",
    "check_checkpoint",
    "ensure_demo",
    "find_server",
    "install_server",
    "server_candidates",
]
