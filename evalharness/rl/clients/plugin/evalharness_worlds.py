"""verifiers finds a taskset by the name of a module: `--env.taskset.id evalharness-worlds`."""

from evalharness.rl.clients.verifiers import NullHarness, WorldEnv, WorldTaskset

__all__ = ["NullHarness", "WorldEnv", "WorldTaskset"]
