"""Play one episode, and measure the times of waiting for a slot, of replies and of the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalharness.base.timing import FamilyTimes, Latencies
from evalharness.config import AgentConfig, ExecutionConfig, LimitsConfig, PolicyConfig
from evalharness.envs.base import EnvSpec
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.models.opened import Opened
from evalharness.models.slots import Slots
from evalharness.models.tries import AbortedError
from evalharness.play import loop
from evalharness.play.progress import Progress
from evalharness.play.scheduler import PendingEpisode
from evalharness.play.time_limit import NO_LIMIT, TimeLimit
from evalharness.play.workers.process import RemoteEnvironment
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.records.episode import Episode, Turn
from evalharness.records.format_trouble import ENOUGH, Replies, cut_prompts


@dataclass
class SlotPlayer(Player):
    """A player that waits for a slot before each request, and measures the waiting time and the reply's time."""

    player: Player
    slots: Slots
    times: FamilyTimes
    latencies: Latencies

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        began = time.perf_counter()
        sent_at: float | None = None
        try:
            async with self.slots.slot():
                sent_at = time.perf_counter()
                reply = await self.player.reply(messages, turn=turn, form=form)
                seconds = time.perf_counter() - sent_at
        finally:  # also measure requests that fail
            ended = time.perf_counter()
            self.times.slot_s += (sent_at or ended) - began
            self.times.model_s += 0.0 if sent_at is None else ended - sent_at
        self.latencies.add(seconds)
        self.slots.count_reply()
        return reply


@dataclass(frozen=True)
class Work:
    """The episodes of a session that are left to play (`jobs`), with their configuration and texts."""

    policy: PolicyConfig
    agent: AgentConfig
    limits: LimitsConfig
    execution: ExecutionConfig
    resolved: str
    """Text of `config.yaml` in the run's folder."""
    specs: Mapping[str, EnvSpec]
    prompts: Mapping[str, PromptFile]
    surfaces: Mapping[str, PlayedSurface]
    data: Path | None
    jobs: Sequence[PendingEpisode]
    clock: TimeLimit = NO_LIMIT
    repeat_turns: int = 0
    """Number of turns to ask again at the end (`--repeat-check`)."""


@dataclass
class Episodes:
    """Plays the episodes of one session; the scheduler gives each episode an environment."""

    work: Work
    opened: Opened
    slots: Slots
    progress: Progress
    on_notice: Callable[[str], None] = lambda text: None
    """Called once if the server cuts off a part of a request: readers of the scores must know this."""
    longest_s: float = 0.0
    """Seconds of the longest episode if it were played alone, at the first decile of the replies' times."""
    _latencies: Latencies = field(default_factory=Latencies)

    def __post_init__(self) -> None:
        policy, chosen = self.work.policy, self.work.agent.chosen
        # A scripted policy sends no requests, so it needs no slots.
        self._scripted = policy.is_scripted
        self._replies = Replies(policy.max_tokens, chosen.name)
        self._noticed_cut = False

    def _check_format(self, turn: Turn) -> None:
        """Count format errors. Raises AbortedError if their share exceeds `stop_on_format_errors`."""
        replies = self._replies
        replies.add(turn)
        self.progress.warning = replies.warning()
        most = self.work.limits.stop_on_format_errors
        if most is not None and replies.turns >= ENOUGH and replies.share > most:
            why = (
                replies.describe_errors() or f"{replies.errors} of {replies.turns} replies are format errors"
            )
            raise AbortedError(f"{why} (stop_on_format_errors: {most:g})")

    async def play(self, job: PendingEpisode, environment: RemoteEnvironment) -> Episode:
        """Play an episode in `environment`. Raises infrastructure errors."""
        task, times, work = job.task, environment.times, self.work

        def player(world: Environment) -> Player:
            own = self.opened.policy.player(task, job.sample, world)
            players.append(own)
            if self._scripted:
                return own
            return SlotPlayer(own, self.slots, times, self._latencies)

        players: list[Player] = []
        key, whole = job.key, False

        def on_turn(turn: Turn) -> None:
            self.progress.count_turn(key, turn)
            if turn.prompt_cut and not self._noticed_cut:
                self._noticed_cut = True
                self.on_notice(f"{task.id}: {cut_prompts(1, turn.turn)}")
            self._check_format(turn)

        self.progress.begin_episode(task.family)
        began = time.perf_counter()
        try:
            episode = await loop.play_episode(
                task,
                environment,
                player,
                prompt=work.prompts[task.family],
                surface=work.surfaces[task.family],
                agent=work.agent.chosen.make(),
                sample=job.sample,
                max_turns=work.agent.turn_limit(work.specs[task.family]),
                keep_thinking=work.agent.keeps_thinking,
                on_turn=on_turn,
            )
            for own in players:
                await own.confirm()
            for own in players:
                episode = own.finish(episode)
            whole = True
        finally:
            if not whole:
                for own in players:
                    own.void()
            self.progress.end_episode(task.family)
            times.wall_s += time.perf_counter() - began
        times.episodes += 1
        times.turns += len(episode.turns)
        quickest = self._latencies.quantile(0.1) or 0.0
        alone = len(episode.turns) * (quickest + times.environment_s / max(times.turns, 1))
        self.longest_s = max(self.longest_s, alone)
        return episode
