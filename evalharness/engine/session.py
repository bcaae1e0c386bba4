"""One sitting of a run: policy opened, pools sized, every episode owed played and kept, the time accounted for."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envs.base import EnvSpec, Task
from evalharness.cluster import WorkerSite
from evalharness.config import RunConfig
from evalharness.engine import efficiency, loop
from evalharness.engine.expected_hits import ExpectedHits
from evalharness.engine.history import History, history_path, pool_sizes
from evalharness.engine.progress import Progress
from evalharness.engine.scheduler import Job, RunAbortedError, Scheduler
from evalharness.engine.throttle import CEILING, Throttle
from evalharness.errors import InfrastructureError
from evalharness.policy.base import Environment, Player, Reply
from evalharness.policy.resolve import Opened, Prepared, Reports
from evalharness.protocol.perturb import Voice
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.records.episode import Episode
from evalharness.records.store import RunStore, read_manifest
from evalharness.records.tokens import TurnTokens
from evalharness.server.metrics import ServerInsight
from evalharness.workers.pool import EnvironmentPool, usable_cores
from evalharness.workers.process import RemoteEnvironment
from evalharness.workers.timing import FamilyTimes, Latencies

_FEW_ENVIRONMENTS = 8
"""A worker that holds fewer has to wait for the model most of the time, so there may be more workers than cores."""


@dataclass
class _Throttled:
    """A policy's session that waits for a place at the model before each turn, and notes how long all took."""

    session: Player
    throttle: Throttle
    times: FamilyTimes
    latencies: Latencies

    async def reply(self, messages: list[Message], *, turn: int) -> Reply:
        began = time.perf_counter()
        asked: float | None = None
        try:
            async with self.throttle.seat():
                asked = time.perf_counter()
                reply = await self.session.reply(messages, turn=turn)
                seconds = time.perf_counter() - asked
        finally:  # what a failed request waited for was time all the same
            ended = time.perf_counter()
            self.times.seat_s += (asked or ended) - began
            self.times.model_s += 0.0 if asked is None else ended - asked
        self.latencies.add(seconds)
        self.throttle.answered()
        return reply


@dataclass
class Engine:
    """What the parts of one sitting share."""

    config: RunConfig
    specs: Mapping[str, EnvSpec]
    store: RunStore
    progress: Progress
    prompts: Mapping[str, PromptFile]
    voices: Mapping[str, Voice]
    data: Path | None
    site: WorkerSite
    on_folder: Callable[[Path], None] = lambda folder: None
    """Told the run's folder once its manifest is written."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """Deaths and restarts of servers."""
    _longest_s: float = 0.0
    _wall_s: float = 0.0
    _allowed_seat_s: float = 0.0
    _client_cpu_s: float = 0.0
    _down_s: float = 0.0
    _sessions: int = 1
    _expected_hits: ExpectedHits = field(default_factory=ExpectedHits)

    async def play_all(
        self, prepared: Prepared, manifest: dict[str, Any], owed: list[Job], history: History
    ) -> str | None:
        """Returns why the run stopped early, or None."""
        self._cores = self.site.cores or usable_cores()
        self._history = history
        self._latencies = Latencies()
        self._throttle = self._make_throttle(len(owed))
        reports = Reports(status=self._set_status, event=self._note_event, overload=self._throttle.overloaded)
        self._pools = self._make_pools(owed)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close_pools)
            if not self.config.is_scripted and not self.config.is_endpoint:
                # Simulators are imported while the model is loaded.
                warming = asyncio.gather(*(pool.warm_up() for pool in self._pools.values()))
                stack.callback(warming.cancel)
            try:
                opened = await stack.enter_async_context(prepared.open(self.store.folder, reports))
            finally:
                self.progress.status = ""
            manifest["sessions"][-1]["policy"] = dict(opened.facts or {})
            self.store.begin(manifest)
            self.on_folder(self.store.folder)
            self._sessions = len(read_manifest(self.store.folder)["sessions"])
            self._insight = ServerInsight(opened.metrics, on_saturated=self._throttle.saturated)
            watching = asyncio.create_task(self._insight.watch())
            self.progress.started = time.monotonic()
            self.progress.owe({(job.task.id, job.sample): job.expected_turns for job in owed})
            self.progress.engine = self._line
            self._cpu_before = time.process_time()
            scheduler = Scheduler(
                pools=self._pools,
                play=lambda job, environment: self._play(job, environment, opened),
                on_episode=self._keep,
                on_failure=self._note_failure,
                throttle=self._throttle,
                attempts=self.config.attempts,
                cores=self._cores,
                policy_alive=opened.failure,
            )
            try:
                await scheduler.run(owed)
            except RunAbortedError as error:
                return str(error)
            finally:
                self._wall_s = self.progress.elapsed
                self._client_cpu_s = time.process_time() - self._cpu_before
                self._allowed_seat_s = self._throttle.allowed_seat_s()
                self._down_s = opened.down_s()
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
            return None

    async def _close_pools(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        if self.config.is_scripted:
            return  # its episodes are not as long as a model's, and its turns cost what an oracle's search costs
        for family, pool in self._pools.items():
            self._history.note_cost(family, pool.cpu_s, pool.times.turns)
        self._history.save(history_path())

    def _make_throttle(self, owed: int) -> Throttle:
        pinned = self.config.concurrency
        if pinned is None and self.config.is_scripted:
            # Nothing waits for a model: as many episodes as processes can be at work.
            pinned = max(2 * self._cores, sum(self.config.workers.values()))
        return Throttle(pinned, ceiling=max(1, min(CEILING, owed)))

    def _make_pools(self, owed: list[Job]) -> dict[str, EnvironmentPool]:
        expected: dict[str, float] = {}
        count: dict[str, int] = {}
        for job in owed:
            family = job.task.family
            cost = job.expected_turns * self._history.cpu_s(self.specs[family])
            expected[family] = expected.get(family, 0.0) + cost
            count[family] = count.get(family, 0) + 1
        sizes = pool_sizes(expected, self._cores)
        pools = {}
        for family in sorted(count):
            spec = self.specs[family]
            pinned = self.config.workers.get(family)
            per_worker = 1 if self.config.is_scripted else spec.envs_per_worker
            most = pinned or (self._cores if spec.envs_per_worker >= _FEW_ENVIRONMENTS else 2 * self._cores)
            most = min(most, -(-count[family] // per_worker))
            pools[family] = EnvironmentPool(
                spec,
                self.data,
                max_workers=most,
                log=self.store.folder / "workers.log",
                size=pinned or sizes[family],
                episodes_per_worker=per_worker,
                make_worker=self.site.make_worker,
                on_this_machine=self.site.cores is None,
            )
        return pools

    async def _play(self, job: Job, environment: RemoteEnvironment, opened: Opened) -> Episode:
        task: Task = job.task
        counts = self.progress.families[task.family]
        times = environment.times

        def session(world: Environment) -> Player:
            own = opened.policy.player(task, job.sample, world)
            if self.config.is_scripted:
                return own
            return _Throttled(own, self._throttle, times, self._latencies)

        tokens: list[TurnTokens] = []
        counts.running += 1
        began = time.perf_counter()
        try:
            episode = await loop.play(
                task,
                environment,
                session,
                prompt=self.prompts[task.family],
                voice=self.voices[task.family],
                sample=job.sample,
                max_turns=self.config.turn_limit(self.specs[task.family]),
                acts_by_tools=self.config.acts_by_tools,
                keep_thinking=self.config.history_thinking == "keep",
                on_turn=self.progress.count_turn,
                on_reply=lambda reply: None if reply.tokens is None else tokens.append(reply.tokens),
            )
        finally:
            counts.running -= 1
            times.wall_s += time.perf_counter() - began
        if tokens:
            self.store.append_tokens(task.id, job.sample, tokens)
        self._expected_hits.add(episode, opened.template)
        times.episodes += 1
        times.turns += len(episode.turns)
        if not self.config.is_scripted:
            self._history.note_episode(task, len(episode.turns))
        quickest = self._latencies.quantile(0.1) or 0.0
        alone = len(episode.turns) * (quickest + times.environment_s / max(times.turns, 1))
        self._longest_s = max(self._longest_s, alone)
        return episode

    def _keep(self, episode: Episode) -> None:
        self.store.append(episode)
        self.progress.finish(episode)

    def _set_status(self, text: str) -> None:
        self.progress.status = text

    def _note_event(self, text: str) -> None:
        self.events.append({"at_s": round(self.progress.elapsed, 1), "event": text})

    def _note_failure(self, job: Job, attempt: int, error: InfrastructureError, final: bool) -> None:
        self.store.append_error(job.task.id, job.sample, attempt, error, final)
        self.progress.status = f"{job.task.id}, try {attempt}: {str(error).splitlines()[0]}"
        if final:
            self.progress.give_up(job.task.family, job.task.id, job.sample)

    def _line(self) -> str:
        """What the live view says of the engine."""
        throttle = self._throttle
        parts = [f"{throttle.episodes} episodes in flight"]
        if not self.config.is_scripted:
            parts = [f"concurrency {throttle.limit} ({throttle.state}), {throttle.busy} at the model"]
        now = self._insight.now
        if now is not None:
            server = f"server {now.running:.0f} running, {now.waiting:.0f} waiting, KV {now.kv_usage:.0%}"
            if (hits := self._insight.prefix_hit_rate) is not None:
                server += f", prefix cache {hits:.0%}"
            parts += [server, f"{self._insight.prompt_rate:.0f}+{self._insight.generation_rate:.0f} tokens/s"]
        return " · ".join(parts)

    def _of_server(self) -> dict[str, Any] | None:
        told = self._insight.summary(self._wall_s)
        return None if told is None else told | {"prefix_cache_expected": self._expected_hits.share}

    def timing(self, titles: Mapping[str, str]) -> dict[str, Any]:
        """What only this sitting knows, for `summary.json`."""
        measured = efficiency.Measured(
            wall_s=self._wall_s,
            cores=self._cores,
            families={family: pool.times for family, pool in self._pools.items()},
            environment_cpu_s={family: pool.cpu_s for family, pool in self._pools.items()},
            workers={family: pool.size for family, pool in self._pools.items()},
            client_cpu_s=self._client_cpu_s,
            longest_episode_s=self._longest_s,
            allowed_seat_s=self._allowed_seat_s,
            concurrency=self._throttle.limit,
            highest_concurrency=self._throttle.highest,
            pinned=self._throttle.pinned is not None,
            down_s=self._down_s,
            server=self._of_server(),
        )
        told = efficiency.report(measured, titles)
        told["recycled_workers"] = sum(pool.recycled for pool in self._pools.values())
        told["overloads"] = self._throttle.overloads
        told["events"] = self.events
        return {
            "wall_s": self._wall_s,
            "sessions": self._sessions,
            "efficiency": told["efficiency"],
            "performance": told,
        }
