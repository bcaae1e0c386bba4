"""Play an ALFWorld game as a TextEnv, by AgentBoard's rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evalharness.envs.alfworld import SPEC
from evalharness.envs.alfworld.actions import CHECK, LOOK, drop_period, repair
from evalharness.envs.alfworld.games import FIX, game_path, hash_game, parse_game
from evalharness.envs.alfworld.open.households import build_game, household_of
from evalharness.envs.alfworld.open.oracle import plan
from evalharness.envs.alfworld.tasks import OWN_WORDS, read_game, sha256
from evalharness.envs.alfworld.world import NOTHING_HAPPENS, World
from evalharness.envs.base import InvalidTaskError, MissingDataError, Task, TextEnv, task_of

_ARRIVAL = re.compile(r"^You arrive at loc \d+\. ")
_TASK_LINE = "Your task is to: "


class Engine(Protocol):
    """The simulator of a game: our `World`, or TextWorld itself (`stock.TextWorldGame`)."""

    def reset(self) -> str: ...
    def step(self, command: str) -> str: ...
    @property
    def won(self) -> bool: ...
    def commands(self) -> Collection[str]: ...


@dataclass(slots=True)
class _Episode:
    task: Task
    game: dict[str, Any]
    engine: Engine
    patterns: list[re.Pattern[str]]
    goal: str
    view: str
    """Answer to `look`: the description of the room, or the observation of the last successful `go to` or `open`."""
    completed: set[int] = field(default_factory=set)
    progress: float = 0.0
    won: bool = False


class ALFWorldEnv(TextEnv):
    """A household in text.

        from evalharness.envs.alfworld import SPEC
        env = SPEC.make(data)
        observation, info = env.reset(options={"task": SPEC.suites.load_tasks("agentboard", data, 0)[0]})

    By AgentBoard's rule, progress is (subgoals whose pattern an observation matched) / (number of subgoals + 1), and 1
    when the goal is reached.
    """

    def __init__(
        self, data: Path | None = None, *, engine: Callable[[Mapping[str, Any]], Engine] = World
    ) -> None:
        """`engine`: function that makes the simulator of a game, by default our `World`."""
        super().__init__(data=data)
        self._engine = engine
        self._current: _Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = task_of(options)
        game = _game(task, self.data)
        engine = self._engine(game)
        opening = engine.reset()
        room, goal = _introduction(opening)
        if task.suite in OWN_WORDS:
            room = opening
        patterns = [re.compile(subgoal) for subgoal in task.subgoals]
        self._current = _Episode(task, game, engine, patterns, goal, view=room)
        return room, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        episode = self._episode
        if episode.task.suite in OWN_WORDS:
            return self._unwrapped_step(action)
        action = repair(action)
        valid = action in (CHECK, LOOK) or action in episode.engine.commands()
        observation = _play(episode, drop_period(action))

        completed = tuple(
            index
            for index, pattern in enumerate(episode.patterns)
            if index not in episode.completed and pattern.search(observation)
        )
        episode.completed.update(completed)
        episode.won = episode.engine.won
        before = episode.progress
        episode.progress = 1.0 if episode.won else len(episode.completed) / (len(episode.patterns) + 1)
        info = self._info(valid=valid, completed=completed)
        return observation, episode.progress - before, episode.won, False, info

    def _unwrapped_step(self, command: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play a command without AgentBoard's corrections and help action. Only the game itself decides on success."""
        episode, before = self._episode, self._episode.progress
        valid = command.strip() in episode.engine.commands()
        observation = episode.engine.step(command)
        episode.won = episode.engine.won
        episode.progress = float(episode.won)
        return observation, episode.progress - before, episode.won, False, self._info(valid=valid)

    @property
    def goal(self) -> str:
        return self._episode.goal

    def valid_actions(self) -> list[str]:
        if self._episode.task.suite in OWN_WORDS:
            return sorted(self._episode.engine.commands())
        return sorted({*self._episode.engine.commands(), LOOK, CHECK})

    def oracle(self) -> list[str]:
        task, world = self._episode.task, World(self._episode.game)
        put = SPEC.actions.templates_in(task.words)["put"]
        return plan(world, task.kind, str(task.payload["object"]), str(task.payload["target"]), put)

    @property
    def _episode(self) -> _Episode:
        return self.playing(self._current)

    def _info(self, *, valid: bool, completed: tuple[int, ...] = ()) -> dict[str, Any]:
        episode = self._episode
        return self.info(progress=episode.progress, success=episode.won, valid=valid, completed=completed)


def _play(episode: _Episode, action: str) -> str:
    engine = episode.engine
    if action == CHECK:
        offered = sorted({*engine.commands(), LOOK})
        return f"Choose an action from these valid actions: {', '.join([*offered, CHECK])}"
    observation = _ARRIVAL.sub("", engine.step(action))
    if action == LOOK:
        # AgentBoard's rule: `look` repeats the observation of the last `go to` or `open`, even if it is out of date.
        return episode.view
    if action.startswith(("go to", "open")) and observation != NOTHING_HAPPENS:
        episode.view = observation
    return observation


def _game(task: Task, data: Path | None) -> dict[str, Any]:
    payload = task.payload
    if task.family != "alfworld" or not {"object", "target"} <= set(payload):
        raise InvalidTaskError(f"{task.id} is not a task of the family alfworld")
    if "household" in payload:
        return dict(build_game(household_of(task)))
    name = str(payload.get("game"))
    if "split" in payload:
        path = game_path(data, str(payload["split"]), name)
        try:
            game = parse_game(path.read_bytes())
        except FileNotFoundError:
            raise MissingDataError(f"ALFWorld game {name} is not in {path.parent}", FIX) from None
        game_hash = hash_game(game)
    else:
        content = read_game(data, name)
        game, game_hash = parse_game(content), sha256(content)
    if game_hash != payload.get("sha256"):
        raise InvalidTaskError(
            f"{task.id}: the hash of its game file is wrong; check the data with: evalharness data verify"
        )
    return game


def _introduction(text: str) -> tuple[str, str]:
    """Return (description of the room, goal). The opening text has three paragraphs: title, room and task."""
    paragraphs = text.split("\n\n")
    if len(paragraphs) < 3 or not paragraphs[2].startswith(_TASK_LINE):
        raise InvalidTaskError(f"this is not the opening text of an ALFWorld game: {text[:200]!r}")
    return paragraphs[1], paragraphs[2].removeprefix(_TASK_LINE)
