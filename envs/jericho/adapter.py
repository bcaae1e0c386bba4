"""Play a game of interactive fiction by AgentBoard's rules, or by the game's own score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalharness.envs.base import TextEnv, task_of
from evalharness.envs.jericho.actions import CHECK, cut_action, is_check, should_change_world
from evalharness.envs.jericho.candidates import valid_commands
from evalharness.envs.jericho.interpreter import Interpreter
from evalharness.envs.jericho.observation import CHECK_PREFIX, clean, is_refused, is_understood, letters
from evalharness.envs.jericho.open.generator import RANDOM_SEED, story_of
from evalharness.envs.jericho.tasks import UNWRAPPED, find_published_story, game_labels


class LabelProgress:
    """Progress by subgoals. A subgoal is a phrase that must appear in an observation; a turn counts at most one."""

    def __init__(self, subgoals: Sequence[str]) -> None:
        self._patterns = [letters(subgoal) for subgoal in subgoals]
        self._unseen = list(range(len(subgoals)))

    @property
    def rate(self) -> float:
        """Return the share of the phrases that have appeared; 0 if the task has no phrases."""
        count = len(self._patterns)
        return (count - len(self._unseen)) / count if count else 0.0

    @property
    def complete(self) -> bool:
        return bool(self._patterns) and not self._unseen

    def update(self, observation: str) -> tuple[int, ...]:
        """Count the first new phrase that the observation contains. Return its index, or () if there is no such
        phrase."""
        text = letters(observation)
        for index in self._unseen:
            if self._patterns[index] in text:
                self._unseen.remove(index)
                return (index,)
        return ()


class OwnScore:
    """Progress by the game's own score. A restart of the game does not reduce the progress."""

    def __init__(self) -> None:
        self._highest, self._most = 0, 0

    def see(self, interpreter: Interpreter) -> None:
        self._most = int(interpreter.frotz.get_max_score())
        self._highest = max(self._highest, int(interpreter.frotz.get_score()))

    @property
    def rate(self) -> float:
        """Return the highest score as a fraction of the game's maximum."""
        return min(1.0, self._highest / self._most) if self._most > 0 else 0.0

    @property
    def complete(self) -> bool:
        return self._most > 0 and self._highest >= self._most


class JerichoEnv(TextEnv):
    """Interactive fiction. The episode ends when every subgoal phrase has appeared, or when the game is over.

    `info["solved"]` is true if the game says that it is won, or if all phrases have appeared and the game is not lost.
    Most tasks are only the first part of a game, and the game says nothing when that part is solved.
    """

    def __init__(self, data: Path | None = None) -> None:
        super().__init__(data=data)
        self._interpreter: Interpreter | None = None
        self._progress = LabelProgress(())
        self._own_score: OwnScore | None = None
        self._observation = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = task_of(options)
        if task.suite == "open":
            self._interpreter = Interpreter(story_of(task), seed=RANDOM_SEED)
        else:
            self._interpreter = Interpreter(find_published_story(task, self.data))
        self._task = task
        self._progress = LabelProgress(task.subgoals)
        self._own_score = OwnScore() if task.suite == UNWRAPPED else None
        if self._own_score is not None:
            return self._interpreter.opening, self._make_own_info(self._own_score, valid=True)
        # As in AgentBoard, the opening text in the label file replaces the game's own opening text.
        self._observation = task.payload["opening"] or clean(self._interpreter.opening)
        return self._observation, self._info(valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._own_score is not None:
            return self._step_by_own_rules(self._own_score, action)
        if self._over:
            return self._observation, 0.0, True, False, self._info(valid=True)
        before = self._progress.rate
        command = cut_action(action)
        if is_check(command):
            observation = CHECK_PREFIX + ", ".join(self.valid_actions())
            return observation, 0.0, self._over, False, self._info(valid=True)
        awaited_key = self._game.awaits_key  # in a menu or a pause, the game reads only a key
        text = self._game.send(command)
        observation = clean(text)
        completed = self._progress.update(observation)
        self._observation = observation
        valid = is_understood(observation)
        info = self._info(
            valid=valid,
            completed=completed,
            published_valid=not is_refused(observation),
            no_effect=valid
            and should_change_world(command)
            and not (awaited_key or completed or self._game.changed),
        )
        return observation, self._progress.rate - before, self._over, False, info

    def _step_by_own_rules(self, own: OwnScore, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play a turn of the suite `unwrapped`. Restart the game if it ends below the maximum score, as TALES does."""
        before, game = own.rate, self._game
        observation = game.send(action)
        valid = is_understood(observation)
        own.see(game)
        if game.over and not own.complete:
            self._interpreter = Interpreter(find_published_story(self.playing(self._task), self.data))
            observation = f"{observation}\n\n-= Restarting =-\n{self._interpreter.opening}"
        return observation, own.rate - before, own.complete, False, self._make_own_info(own, valid=valid)

    def _make_own_info(self, own: OwnScore, *, valid: bool) -> dict[str, Any]:
        return self.info(progress=own.rate, success=own.complete, valid=valid)

    @property
    def goal(self) -> str:
        return self.playing(self._task).goal

    def valid_actions(self) -> list[str]:
        """Return one command for each possible change of the world, and the help action. This takes 0.1 to 3.5 s."""
        if self._over:
            return []
        if self._own_score is not None:
            return valid_commands(self._game, "")
        return sorted([*valid_commands(self._game, self._observation), CHECK])

    def oracle(self) -> list[str]:
        """Return the stored plan; [] in the suite `unwrapped`, for which we have no plans."""
        payload = self.playing(self._task).payload
        if self._own_score is not None:
            return []
        return list(payload["plan"] if "plan" in payload else game_labels()[payload["game"]].plan)

    def reference_plans(self) -> dict[str, list[str]]:
        """Return the oracle's plan, and for AgentBoard's suite also Jericho's recorded solution of the whole game."""
        plans = {"oracle": self.oracle()}
        if self.playing(self._task).suite == "agentboard":
            plans["walkthrough"] = list(self._game.frotz.get_walkthrough())
        return plans

    def close(self) -> None:
        self._interpreter = None

    @property
    def _game(self) -> Interpreter:
        return self.playing(self._interpreter)

    @property
    def _over(self) -> bool:
        return self._game.over or self._game.halted or self._progress.complete

    def _info(
        self,
        *,
        valid: bool,
        completed: tuple[int, ...] = (),
        published_valid: bool = True,
        no_effect: bool = False,
    ) -> dict[str, Any]:
        victory = self._game.victory
        lost = self._game.over and not victory
        halted = self._game.halted and not self._progress.complete
        info = self.info(
            progress=self._progress.rate,
            success=self._progress.complete,
            solved=victory or (self._progress.complete and not lost),
            valid=valid and not halted,
            completed=completed,
            published_valid=published_valid,
            no_effect=no_effect and not halted,
        )
        return info | ({"halted": True} if halted else {})
