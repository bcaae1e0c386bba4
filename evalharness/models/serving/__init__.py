"""The vLLM server: installed in an environment of its own, found, started for one model, ended with us."""

from evalharness.models.serving.checkpoint import CheckpointError, CheckpointInfo, check_checkpoint
from evalharness.models.serving.demo import ensure_demo
from evalharness.models.serving.find import ServerCommand, ServerNotFound, find_server, server_candidates
from evalharness.models.serving.install import ServerInstallError, install_server
from evalharness.models.serving.managed import ManagedServer, ServerStartError
from evalharness.models.serving.private import ServerInstall

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
