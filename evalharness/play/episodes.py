"""One job played, with the time it takes accounted for: slots at the model, replies, the simulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from evalharness.base.timing import FamilyTimes, Latencies
from evalharness.config import AgentConfig, ExecutionConfig, LimitsConfig, PolicyConfig
from evalharness.envs.base import EnvSpec
from evalharness.models.adaptive_concurrency import AdaptiveConcurrency
from evalharness.models.base import Environment, Player, Reply, RequestForm
from evalharness.models.opened import Opened
from evalharness.models.template import Template
from evalharness.models.tries import AbortedError
from evalharness.play import loop
from evalharness.play.budget import NO_LIMIT, Budget, TimeLimit
from evalharness.play.progress import Progress
from evalharness.play.scheduler import Job
from evalharness.play.workers.process import RemoteEnvironment
from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.records.episode import Episode, Turn
from evalharness.records.format_trouble import ENOUGH, Replies, cut_prompts
from evalharness.records.tokens import TurnTokens, common_prefix


@dataclass
class ExpectedHits:
    """Counted over episodes: a prompt finds the prompt of the turn before, less what the template does not keep of
    it; where the token ids are on record, exactly what the two have in common. What episodes of a family have in
    common (instruction, worked example) comes on top, so that a server with room for everything measures more; one
    that measures less has thrown prefixes away."""

    found: float = 0.0
    prompts: float = 0.0
    """Tokens of all prompts."""

    def add(
        self, episode: Episode, template: Template | None, tokens: Sequence[TurnTokens | None] = ()
    ) -> None:
        """`tokens`: of each turn, where they are recorded. Else nothing is counted where the template is unknown or the
        server gave no token counts."""
        ids = [turn.prompt for turn in tokens if turn is not None]
        if ids and len(ids) == len(episode.turns):
            self.prompts += sum(map(len, ids))
            self.found += sum(common_prefix(earlier, prompt) for earlier, prompt in pairwise(ids))
            return
        lengths = [turn.prompt_tokens for turn in episode.turns]
        if template is None or None in lengths:
            return
        trimmed = {trim.turn for trim in episode.trims}
        self.prompts += sum(length or 0 for length in lengths)
        for earlier, turn in pairwise(episode.turns):
            if turn.turn not in trimmed:  # there nothing behind the head is found
                self.found += max(0.0, (earlier.prompt_tokens or 0) - template.lost_tokens)

    @property
    def share(self) -> float | None:
        """0..1; None before the first episode."""
        return self.found / self.prompts if self.prompts else None


@dataclass
class SlotPlayer(Player):
    """A player that waits for a slot at the model before each turn, and notes how long all took."""

    player: Player
    slots: AdaptiveConcurrency
    times: FamilyTimes
    latencies: Latencies
    job: Job
    budget: Budget | None = None

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        began = time.perf_counter()
        asked: float | None = None
        try:
            family, key = self.job.task.family, self.job.key
            await self.slots.take_slot(family, self.job.expected_turns - turn, key)
            try:
                async with self.budget.asking() if self.budget else nullcontext():
                    asked = time.perf_counter()
                    reply = await self.player.reply(messages, turn=turn, form=form)
                    seconds = time.perf_counter() - asked
                    if reply.prompt_tokens is not None:
                        self.slots.room.answered(
                            key, family, reply.prompt_tokens + (reply.completion_tokens or 0)
                        )
                    if self.budget:
                        self.budget.count(self.job.key, reply)
            finally:
                self.slots.leave_slot()
        finally:  # what a failed request waited for was time all the same
            ended = time.perf_counter()
            self.times.slot_s += (asked or ended) - began
            self.times.model_s += 0.0 if asked is None else ended - asked
        self.latencies.add(seconds)
        self.slots.answered()
        return reply


@dataclass(frozen=True)
class Work:
    """What a start has to play, and in which words."""

    policy: PolicyConfig
    agent: AgentConfig
    limits: LimitsConfig
    execution: ExecutionConfig
    resolved: str
    """`config.yaml` of the run's folder."""
    specs: Mapping[str, EnvSpec]
    prompts: Mapping[str, PromptFile]
    surfaces: Mapping[str, PlayedSurface]
    data: Path | None
    jobs: Sequence[Job]
    budget: Budget | None = None
    clock: TimeLimit = NO_LIMIT


@dataclass
class Episodes:
    """Plays the jobs of one start, each in the environment it is given."""

    work: Work
    opened: Opened
    slots: AdaptiveConcurrency
    progress: Progress
    on_tokens: Callable[[str, int, list[TurnTokens | None]], None]
    """Gets the tokens of an episode's turns, where they are recorded, before the episode itself is kept."""
    expected_hits: ExpectedHits = field(default_factory=ExpectedHits)
    on_notice: Callable[[str], None] = lambda text: None
    """Gets what the scores have to be read with, once."""
    longest_s: float = 0.0
    """What the longest would have taken alone, at the speed of the quickest replies."""
    _latencies: Latencies = field(default_factory=Latencies)

    def __post_init__(self) -> None:
        policy, chosen = self.work.policy, self.work.agent.chosen
        # No model answers: nothing waits for a slot.
        self._scripted = policy.is_scripted
        self._replies = Replies(policy.max_tokens, chosen.name)
        self._noticed_cut = False

    def _look_at_form(self, turn: Turn) -> None:
        """Raises AbortedError where more replies are format errors than `stop_on_format_errors` allows."""
        replies = self._replies
        replies.add(turn)
        self.progress.warning = replies.warning()
        most = self.work.limits.stop_on_format_errors
        if most is not None and replies.turns >= ENOUGH and replies.share > most:
            why = replies.said() or f"{replies.errors} of {replies.turns} replies are format errors"
            raise AbortedError(f"{why} (stop_on_format_errors: {most:g})")

    async def play(self, job: Job, environment: RemoteEnvironment) -> Episode:
        """Infrastructure errors pass through."""
        task, times, work, budget = job.task, environment.times, self.work, self.work.budget

        def player(world: Environment) -> Player:
            own = self.opened.policy.player(task, job.sample, world)
            players.append(own)
            if self._scripted:
                return own
            return SlotPlayer(own, self.slots, times, self._latencies, job, budget)

        players: list[Player] = []
        key, whole = job.key, False

        def on_turn(turn: Turn) -> None:
            self.progress.count_turn(key, turn)
            if turn.prompt_cut and not self._noticed_cut:
                self._noticed_cut = True
                self.on_notice(f"{task.id}: {cut_prompts(1, turn.turn)}")
            self._look_at_form(turn)

        tokens: list[TurnTokens | None] = []
        if budget:
            budget.begin(key)
        self.progress.begin_episode(task.family, key)
        began = time.perf_counter()
        try:
            episode = await loop.play(
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
                on_reply=lambda reply: tokens.append(reply.tokens),
            )
            for own in players:
                await own.confirm()
            for own in players:
                episode = own.finished(episode)
            whole = True
            tokens = tokens[len(tokens) - len(episode.turns) :]  # of the last trial, as `episode.turns`
        finally:
            if not whole:
                for own in players:
                    own.void()
            self.slots.ended(key)
            if budget:
                budget.end(key, whole=whole)
            self.progress.end_episode(task.family)
            times.wall_s += time.perf_counter() - began
        if any(tokens):
            self.on_tokens(task.id, job.sample, tokens)
        self.expected_hits.add(
            episode, self.opened.template if work.agent.chosen.kind.appends else None, tokens
        )
        times.episodes += 1
        times.turns += len(episode.turns)
        quickest = self._latencies.quantile(0.1) or 0.0
        alone = len(episode.turns) * (quickest + times.environment_s / max(times.turns, 1))
        self.longest_s = max(self.longest_s, alone)
        return episode
