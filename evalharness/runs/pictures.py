"""A picture of the world beside each turn of an episode: the recorded episode is replayed to draw it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from evalharness.base.errors import UserError
from evalharness.envs import specs
from evalharness.envs.base import EnvSpec, InvalidTaskError, Task, TextEnv
from evalharness.envs.picture import place_maps
from evalharness.protocol.perturb import PlayedSurface
from evalharness.records.episode import Episode
from evalharness.records.manifest import Manifest
from evalharness.results.behaviour.turns import plain
from evalharness.suites.selection import tasks_at_hand


class Pictures:
    """Draws the episodes of one run. It makes no suite: tasks that are not on this machine are not drawn."""

    def __init__(self, manifest: Manifest, data: Path | None) -> None:
        self._manifest, self._data = manifest, data
        self._specs = specs()
        self._surfaces: dict[str, PlayedSurface] = {}
        self._tasks: dict[str, dict[str, Task]] = {}
        self._environments: dict[str, TextEnv] = {}
        self._open = ExitStack()
        self.differing = 0
        """Episodes that are not drawn because replaying their actions gives other observations here."""

    def __enter__(self) -> Pictures:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def of(self, episode: Episode) -> list[str]:
        """Return SVG documents of the start and of every turn, in order; none if the episode cannot be drawn."""
        spec = self._specs.get(episode.family)
        if spec is None:
            return []
        surface = self._surfaces.setdefault(spec.family, PlayedSurface(spec, self._manifest.config.perturb))
        if spec.picture is not None:
            return self._replay(spec, spec.picture, surface, episode)
        if spec.room is not None:
            return place_maps(self._replay(spec, spec.room, surface, episode))
        return [] if spec.place is None else place_maps(_places(spec.place, surface, episode))

    def _replay(
        self, spec: EnvSpec, seen: Callable[[TextEnv], str], surface: PlayedSurface, episode: Episode
    ) -> list[str]:
        """Return the value of `seen` at the start and after every turn."""
        task = self._tasks_of(spec).get(episode.task_id)
        if task is None or task.content_hash != episode.task_hash:
            return []
        environment = self._environment(spec)
        try:
            environment.reset(options={"task": task})
        except InvalidTaskError:
            return []
        views = [seen(environment)]
        for turn in episode.turns:
            if turn.action is not None:
                observation = environment.step(surface.to_world(turn.action))[0]
                if surface.observation(observation, turn.action) != turn.observation:
                    self.differing += 1
                    return []
            views.append(seen(environment))
        return views

    def _tasks_of(self, spec: EnvSpec) -> dict[str, Task]:
        if spec.family not in self._tasks:
            config = self._manifest.config
            try:
                tasks = tasks_at_hand(spec, self._manifest.suite, self._data, config.suite_seed)
            except UserError:
                tasks = []
            self._tasks[spec.family] = {task.id: task for task in tasks}
        return self._tasks[spec.family]

    def _environment(self, spec: EnvSpec) -> TextEnv:
        if spec.family not in self._environments:
            self._environments[spec.family] = self._open.enter_context(closing(spec.make(self._data)))
        return self._environments[spec.family]


def _places(place: Callable[[str, str], str | None], surface: PlayedSurface, episode: Episode) -> list[str]:
    """Return the agent's place at the start and after every turn; empty until it is known."""
    walk = [place("", episode.first_observation) or ""]
    for turn in episode.turns:
        acted = turn.valid and turn.action is not None
        came_to = place(plain(surface.to_world(turn.action or "")), turn.observation) if acted else None
        walk.append(came_to or walk[-1])
    return walk
