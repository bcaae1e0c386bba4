"""Use the tasks as a taskset, and the episodes as an environment, of the trainer `verifiers` (see `plugin`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import verifiers.v1 as vf
from verifiers.v1.harnesses.null import NullHarness
from verifiers.v1.runtimes import SubprocessConfig

from evalharness.rl.clients.session import AsyncSession, tasks

__all__ = ["NullHarness", "WorldEnv", "WorldTaskset"]


class WorldData(vf.TaskData):  # type: ignore[misc]
    url: str
    split: str
    task_id: str
    reward: str | None


class WorldConfig(vf.TasksetConfig):  # type: ignore[misc]
    url: str = "http://127.0.0.1:8000"
    """The address that `evalharness env serve` printed; if the server needs a token, set $EVALHARNESS_ENV_TOKEN."""
    split: Literal["train", "validation"] = "train"
    reward: Literal["success", "progress_gain"] | None = None
    """None means the server's default reward."""


class WorldTask(vf.Task[WorldData]):  # type: ignore[misc]
    pass


class WorldTaskset(vf.Taskset[WorldTask, WorldConfig]):  # type: ignore[misc]
    def load(self) -> Iterator[WorldTask]:
        config = self.config
        for task in tasks(config.url, config.split):
            yield WorldTask(
                WorldData(
                    id=task["id"],
                    name=task["id"],
                    description=task["goal"],
                    system_prompt=task["system_prompt"],
                    url=config.url,
                    split=config.split,
                    task_id=task["id"],
                    reward=config.reward,
                ),
                config.task,
            )


class WorldEnvConfig(vf.EnvConfig):  # type: ignore[misc]
    # verifiers' null harness only calls the model and runs no generated code, so it needs no container.
    player: vf.AgentConfig = vf.AgentConfig(runtime=SubprocessConfig())


class WorldEnv(vf.Env[WorldEnvConfig]):  # type: ignore[misc]
    """The server's texts are the user's messages: first the task's prompt, then the observation after each reply."""

    async def run(self, task: WorldTask, agents: Any) -> None:
        data, total = task.data, 0.0
        async with AsyncSession(data.url) as session:
            turn = await session.reset(split=data.split, task_id=data.task_id, reward=data.reward)
            async with agents.player.interaction(task) as interaction:
                segment = await interaction.turn(turn.text)
                while not segment.terminated:
                    turn = await session.step(segment.last_reply)
                    total += turn.reward
                    if turn.done:
                        break
                    segment = await interaction.turn(turn.text)
            state = await session.state()
        trace = interaction.trace
        trace.record_reward("reward", total)
        for name in ("success", "progress", "step_count"):
            trace.record_metric(name, float(state[name]))
