"""A program: OpenEnv's own validation of a package (RFC 008), with our server as the subject.

    python openenv_validation.py PACKAGE COMMAND...

Prints the status of each check. Docker is replaced by a process in a network namespace of its own, so that the
declared `no-network` is enforced and measured with OpenEnv's probes.
"""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from openenv.validation.providers import StartupError, _netns
from openenv.validation.runner import run_validation, source_digest
from openenv.validation.types import ProviderCapability

SINK = "10.99.0.1"
"""The address of the sink, in a namespace that the subject's has no route to."""


def in_new_namespace(prepare: str, *command: str) -> subprocess.Popen[bytes]:
    script = f'mount -t sysfs sysfs /sys && ip link set lo up && {prepare} && exec "$@"'
    process = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c", script, "sh", *command])
    own = Path("/proc/self/ns/net").readlink()
    while process.poll() is None and Path(f"/proc/{process.pid}/ns/net").readlink() == own:
        time.sleep(0.01)
    return process


def beside(subject: subprocess.Popen[bytes], script: str, *arguments: str) -> list[str]:
    """The command that runs a script in the namespace of a process."""
    return [
        "nsenter",
        "--target",
        str(subject.pid),
        "--net",
        "--mount",
        sys.executable,
        "-c",
        script,
        *arguments,
    ]


class Subject:
    def __init__(self, server: subprocess.Popen[bytes], mode: str) -> None:
        self.server, self.mode = server, mode

        class Relay(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                subprocess.run(
                    beside(server, _netns.RELAY_SCRIPT), stdin=self.request, stdout=self.request, check=False
                )

        self.bridge = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay)
        self.bridge.daemon_threads = True
        threading.Thread(target=self.bridge.serve_forever, daemon=True).start()
        self.base_url = f"http://127.0.0.1:{self.bridge.server_address[1]}"

    def inspect(self) -> dict[str, Any]:
        return {}

    def measure_network(self) -> dict[str, Any]:
        sink = in_new_namespace(f"ip addr add {SINK}/32 dev lo", sys.executable, "-c", _netns.SINK_SCRIPT)
        try:
            control, measured = (
                json.loads(subprocess.check_output(beside(where, _netns.PROBE_SCRIPT, SINK, wait)))
                for where, wait in ((sink, "20"), (self.server, "0"))
            )
        finally:
            sink.kill()
            sink.wait()
        probes = [
            {"kind": kind, "control": control["probes"][kind], "subject": measured["probes"][kind]}
            for kind in control["probes"]
        ]
        return {
            "requested_mode": self.mode,
            "subject_network_mode": "none",
            "namespace": measured["namespace"],
            "probes": probes,
        }

    def stop(self) -> None:
        self.bridge.shutdown()
        self.server.terminate()
        self.server.wait(60)


class ProcessProvider:
    name = "process"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD, ProviderCapability.NETWORK_POLICY})
    supported_network_modes = frozenset({"no-network"})

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def build(self, root: Path, execution: Any) -> str:
        return f"sha256:{source_digest(root)}"

    def start(self, spec: Any) -> Subject:
        server = in_new_namespace("true", *self.command)
        waiting = ["200"]
        if subprocess.run(beside(server, _netns.WAIT_READY_SCRIPT, *waiting), check=False).returncode:
            server.kill()
            raise StartupError("the server did not answer")
        return Subject(server, spec.network.mode)


if __name__ == "__main__":
    report = run_validation(Path(sys.argv[1]), provider=ProcessProvider(sys.argv[2:]))
    for result in report.results:
        print(json.dumps([result.check_id, result.status.value, result.evidence]))
