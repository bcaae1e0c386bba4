"""What each of several model servers asks of a Ray cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from evalharness.base.errors import UserError

CORES = 0.1
"""Of a node, reserved for one worker or server. Less than a worker uses while it steps, because most wait for the
model; and when a node dies the others must have room for what was there."""


@dataclass(frozen=True)
class ServerResources:
    """What one of several servers asks of the cluster."""

    number: int
    gpus: int
    """0: a CPU server, which computes on all cores of its node."""

    def options(self) -> dict[str, Any]:
        """For its actor. A CPU server goes to the node of its number, if that is there."""
        if self.gpus:
            return {"num_gpus": self.gpus, "num_cpus": CORES}
        nodes = _nodes_with("CPU")
        node = nodes[self.number % len(nodes)]["NodeID"] if nodes else None
        strategy = NodeAffinitySchedulingStrategy(node, soft=True) if node else "DEFAULT"
        return {"num_cpus": CORES, "scheduling_strategy": strategy}

    def __str__(self) -> str:
        return f"{self.gpus} free GPUs" if self.gpus else "a core"


def _nodes_with(resource: str) -> list[dict[str, Any]]:
    every: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    nodes = [node for node in every if node["Alive"] and node["Resources"].get(resource, 0) >= 1]
    return sorted(nodes, key=lambda node: str(node["NodeID"]))


def resources_of(replicas: int, each: int) -> list[ServerResources]:
    """Of the replicas on this cluster; `each` is the GPUs of one. Raises UserError where they do not fit."""
    with_gpus = _nodes_with("GPU")
    if with_gpus:
        fit = sum(int(node["Resources"]["GPU"]) // each for node in with_gpus)
        if replicas > fit:
            raise UserError(
                f"--replicas {replicas} needs {each} GPUs of one node for each, and the cluster's "
                f"{len(with_gpus)} nodes with GPUs have room for {fit}"
            )
        return [ServerResources(number, each) for number in range(replicas)]
    nodes = len(_nodes_with("CPU"))
    if replicas > max(nodes, 1):
        raise UserError(
            f"--replicas {replicas}: a server without GPUs takes a whole node, and the cluster has {nodes}"
        )
    return [ServerResources(number, 0) for number in range(replicas)]


async def result(remote: Any) -> dict[str, Any]:
    """What a call returned. Through a future of the standard library, which works on uvloop and for `ray://` too."""
    answer: dict[str, Any] = await asyncio.wrap_future(remote.future())
    return answer
