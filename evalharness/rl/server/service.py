"""The server's tasks, sessions and answers in OpenEnv's format, independent of HTTP and WebSockets."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

from evalharness.models.base import Reply
from evalharness.play.workers.process import WorkerError, WorkerStartError, despite_others
from evalharness.protocol.drawn import words_of
from evalharness.rl.server.messages import (
    EpisodeState,
    ResetRequest,
    TaskRangeRequest,
    TaskRequest,
    TextAction,
    TextObservation,
)
from evalharness.rl.server.pools import Pools
from evalharness.rl.server.session import Answer, Bare, EpisodeRules, Reward, RunningEpisode
from evalharness.rl.server.tasks import ServedTask, TaskTable, UnknownTaskError


class Service:
    """The tasks and rules that all clients share."""

    def __init__(
        self, name: str, table: TaskTable, pools: Pools, rules: EpisodeRules, reward: Reward
    ) -> None:
        self.name = name
        """The environment's name in URL paths, such as `/NAME/tasks`."""
        self.table, self.pools, self.rules, self.reward = table, pools, rules, reward

    def splits(self) -> list[dict[str, str]]:
        return [{"name": split, "type": split} for split in self.table.splits]

    def task(self, asked: TaskRequest) -> dict[str, Any]:
        return self._describe_task(asked.split, asked.index)

    def tasks(self, asked: TaskRangeRequest) -> list[dict[str, Any]]:
        """Return the tasks `start` to `stop` of a split, like a Python slice."""
        count = len(self.table.split(asked.split))
        return [self._describe_task(asked.split, i) for i in range(count)[asked.start : asked.stop]]

    def metadata(self) -> dict[str, Any]:
        families = ", ".join(spec.title for spec in self.rules.specs.values())
        counts = ", ".join(f"{len(self.table.split(split))} {split} tasks" for split in self.table.splits)
        warning = " Tasks of evaluations are among them." if self.table.evaluated else ""
        return {
            "name": self.name,
            "description": f"{families} as evalharness evaluates them: {counts}.{warning}",
        }

    def _describe_task(self, split: str, index: int) -> dict[str, Any]:
        served = self.table.at(split, index)
        task = served.task
        surface = self.rules.surfaces[task.family]
        prompt = surface.prompt(self.rules.prompts[task.family].for_kind(task.kind))
        return {
            "id": task.name,
            "index": index,
            "family": task.family,
            "kind": task.kind,
            "difficulty": task.difficulty,
            "suite_seed": task.suite_seed,
            "goal": surface.names(task.goal),
            "system_prompt": prompt.system.strip(),
            "max_turns": self.rules.turn_limits[task.family],
        }


class NoEpisodeOpenError(Exception):
    """A reply came before a reset, or after the episode's end."""


_TRIES = 3
"""Number of tries to begin an episode; nothing has been played yet, so a new try loses nothing."""


class ClientSession:
    """One episode of a connection. No other connection has access to it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.episode: RunningEpisode | None = None

    async def reset(self, asked: ResetRequest) -> dict[str, Any]:
        """Begin an episode. Raises InfrastructureError, UserError, BusyError, UnknownTaskError."""
        served = self._choose_task(asked)
        if asked.bare and self.service.rules.specs[served.task.family].suites.own_words is None:
            raise UnknownTaskError(
                f"{served.task.name}: its simulator has no original wording, which the option `bare` needs"
            )
        await self.close()
        reward, name = asked.reward or self.service.reward, asked.episode_id or uuid.uuid4().hex
        return _observation(await self._begin(served, reward, name, bare=asked.bare))

    async def _begin(self, served: ServedTask, reward: Reward, name: str, *, bare: bool) -> Answer:
        rules, tries = self.service.rules, 0
        while True:
            tries += 1
            episode = self.episode = RunningEpisode(
                served, reward, name, rules.surface(served, name), Bare() if bare else None
            )
            try:
                return await episode.begin(self.service.pools, rules)
            except BaseException as error:
                self.episode = None
                await episode.close()
                gone = isinstance(error, WorkerError) and not isinstance(error, WorkerStartError)
                if tries == _TRIES or not gone:
                    raise

    async def step(self, action: TextAction) -> dict[str, Any]:
        """Send a reply. If the simulator fails, replay the episode in another. If that fails, raise WorkerError."""
        episode = self.episode
        if episode is None or episode.over:
            raise NoEpisodeOpenError("no episode is open: reset first")
        reply = Reply(
            action.text,
            reasoning=action.reasoning,
            finish_reason=action.finish_reason,
            stopped_by=action.stopped_by,
        )
        try:
            try:
                answer = await episode.say(reply)
            except WorkerError:
                answer = await self._retry(episode)
        except Exception:
            # Both simulators failed: drop the episode, which gets no score.
            failed, self.episode = self.episode, None
            if failed is not None:
                await failed.close()
            raise
        return _observation(answer)

    async def _retry(self, failed: RunningEpisode) -> Answer:
        """Replay all replies in a new simulator, to reach the same state. Return the answer to the last reply."""
        return await despite_others(lambda: self._replay(failed))

    async def _replay(self, failed: RunningEpisode) -> Answer:
        if self.episode is not None:
            await self.episode.close()
        await self._begin(failed.served, failed.reward, failed.episode_id, bare=failed.bare is not None)
        episode = self.episode
        assert episode is not None
        for reply in failed.replies:
            answer = await episode.say(reply)
        seen = [turn.observation for turn in failed.turns]
        if seen != [turn.observation for turn in episode.turns[: len(seen)]]:
            raise WorkerError(
                f"the simulator of {failed.served.task.name} failed, and a second one gives other observations"
            )
        return answer

    def state(self) -> dict[str, Any]:
        episode = self.episode
        if episode is None:
            return EpisodeState(evaluation_tasks=self.service.table.evaluated).model_dump()
        result, turns, task = episode.result, episode.turns, episode.served.task
        kinds = Counter(str(kind) for turn in turns for kind in turn.format_errors)
        start = 0.0 if episode.world is None else episode.world.progress
        return EpisodeState(
            episode_id=episode.episode_id,
            step_count=len(turns),
            task_id=task.name,
            family=task.family,
            split=episode.served.split,
            done=result is not None,
            ended_by=None if result is None else result.ended_by,
            success=result is not None and result.success,
            solved=result is not None and result.solved,
            progress=episode.progress,
            progress_gain=episode.progress - start,
            valid_actions=sum(turn.valid for turn in turns),
            format_errors=dict(sorted(kinds.items())),
            max_turns=self.service.rules.turn_limits[task.family],
            perturbation=episode.surface.name,
            words=words_of(episode.surface),
            evaluation_tasks=self.service.table.evaluated,
        ).model_dump()

    async def close(self) -> None:
        episode, self.episode = self.episode, None
        if episode is not None:
            await episode.close()

    def _choose_task(self, asked: ResetRequest) -> ServedTask:
        table = self.service.table
        if asked.index is not None and asked.task_id is not None:
            raise UnknownTaskError("give index or task_id, not both")
        served = None
        if asked.index is not None:
            served = table.at(asked.split, asked.index)
        if asked.task_id is not None:
            served = table.find_task(asked.split, asked.task_id)
        if served is not None:
            if asked.family not in (None, served.task.family):
                raise UnknownTaskError(f"{served.task.name} is not of {asked.family!r}; leave the family out")
            return served
        if asked.seed is not None:
            return table.draw_task(asked.split, asked.seed, asked.family, asked.kind)
        return table.next(asked.split, asked.family, asked.kind)


def _observation(answer: Answer) -> dict[str, Any]:
    """Put reward and done beside the observation, where OpenEnv's clients expect them."""
    observation = TextObservation(
        text=answer.messages[-1]["content"],
        messages=[dict(message) for message in answer.messages],
        kept=answer.kept,
        admissible=None if answer.admissible is None else list(answer.admissible),
        metadata={},
    )
    return {
        "observation": observation.model_dump(exclude={"done", "reward"}),
        "reward": answer.reward,
        "done": answer.done,
    }
