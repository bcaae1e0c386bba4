"""The module that the trainer `verifiers` imports for `--env.taskset.id evalharness-worlds`."""

from evalharness.rl.clients.verifiers import NullHarness, WorldEnv, WorldTaskset

__all__ = ["NullHarness", "WorldEnv", "WorldTaskset"]
