"""Play BabyAI as a text environment."""

from __future__ import annotations

import json
from typing import Any

from evalharness.envs.babyai.actions import NO_CHANGE, UNKNOWN, Actions, available, listing
from evalharness.envs.babyai.levels import AGENTGYM_LEVELS, LEVELS
from evalharness.envs.babyai.mission import milestones
from evalharness.envs.babyai.observation import COMPLETED, describe
from evalharness.envs.babyai.open.oracle import Oracle
from evalharness.envs.babyai.rules import AgentGymPlanRules, AgentGymRules, MissionRules, PublishedRules
from evalharness.envs.babyai.tasks import AGENTGYM, make_published_goal
from evalharness.envs.babyai.world import World
from evalharness.envs.base import InvalidTaskError, Task, TextEnv, task_of

_AS_PUBLISHED = ("agentboard", AGENTGYM)


class BabyAIEnv(TextEnv):
    """A BabyAI level in words.

    >>> env = BabyAIEnv()
    >>> observation, info = env.reset(options={"task": task})
    >>> observation, reward, terminated, truncated, info = env.step("go to red ball 1")
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        task = task_of(options)
        self._world = _world_of(task)
        self._rules = _rules_of(task, self._world)
        mission = self._world.mission
        self._goal = make_published_goal(mission) if task.suite in _AS_PUBLISHED else mission
        self._task = task
        self._actions: Actions | None = None
        self._valid = self._success = self._solved = False
        return self._add_listing(describe(self._world.view)), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        task = self.playing(self._task)
        before = self._rules.rate
        completed: tuple[int, ...] = ()
        done = False
        sentence = action.lower().strip()
        actions = self._available()
        situation = self._situation()
        if "check" in sentence:
            observation = listing(actions)
            self._valid = True
        elif sentence not in actions.moves:
            observation = actions.refusals.get(sentence, UNKNOWN) if sentence else NO_CHANGE
            self._valid = False
        elif not actions.moves[sentence]:
            observation = NO_CHANGE
            if task.suite not in _AS_PUBLISHED:
                self._valid = True  # AgentBoard keeps the validity of the previous step
        else:
            self._valid = True
            outcome = self._rules.perform(self._world, actions.moves[sentence])
            self._actions = None
            self._solved = self._solved or outcome.succeeded
            observation = describe(self._world.view)
            completed, done, success = self._rules.result_of(outcome, observation)
            if self._rules.announces_completion(outcome):
                observation += COMPLETED
            self._success = self._success or success
        no_effect = self._valid and "check" not in sentence and self._situation() == situation
        info = self._info(completed, no_effect=no_effect)
        return self._add_listing(observation), self._rules.rate - before, done, False, info

    def _add_listing(self, observation: str) -> str:
        """In AgentGym's suite, add the list of valid actions to the observation, as AgentGym does at every turn."""
        if self.playing(self._task).suite != AGENTGYM:
            return observation
        return f"{observation}\nAvailable actions: {json.dumps(list(self._available().moves))}"

    @property
    def world(self) -> World:
        self.playing(self._task)
        return self._world

    @property
    def goal(self) -> str:
        self.playing(self._task)
        return self._goal

    def valid_actions(self) -> list[str]:
        self.playing(self._task)
        return sorted(self._available().moves)

    def oracle(self) -> list[str]:
        task = self.playing(self._task)
        if task.payload["level"] not in LEVELS:
            return []  # the oracle cannot plan for the 12 levels that only AgentGym has
        world = _world_of(task)
        rules = _rules_of(task, world)
        if isinstance(rules, AgentGymRules):
            rules = AgentGymPlanRules(world, milestones(world))
        return Oracle(world, rules).plan()

    def reference_plans(self) -> dict[str, list[str]]:
        """Return the oracle's plan, and for AgentBoard's suite also a plan for minigrid's mission without the
        labels."""
        plans = {"oracle": self.oracle()}
        task = self.playing(self._task)
        if task.suite == "agentboard":
            world = _world_of(task)
            plans["mission"] = Oracle(world, MissionRules(world, milestones(world))).plan()
        return {name: plan for name, plan in plans.items() if plan}

    def _available(self) -> Actions:
        """Return the valid actions for the current view; they are computed once per view."""
        if self._actions is None:
            self._actions = available(self._world.view, self._world.direction)
        return self._actions

    def _situation(self) -> tuple[Any, ...]:
        """Return the agent's pose and view: if an action changes neither, it has no effect."""
        return self._world.position, self._world.direction, self._world.view

    def _info(self, completed: tuple[int, ...] = (), *, no_effect: bool = False) -> dict[str, Any]:
        return self.info(
            progress=self._rules.rate,
            success=self._success,
            solved=self._solved,
            valid=self._valid,
            completed=completed,
            no_effect=no_effect,
        )


def _world_of(task: Task) -> World:
    level, seed = task.payload.get("level"), task.payload.get("seed")
    if level not in AGENTGYM_LEVELS or not isinstance(seed, int):
        raise InvalidTaskError(f"{task.id} is not a BabyAI task: its payload needs a known level and a seed")
    try:
        return World(level, seed, task.payload.get("parameters"))
    except (TypeError, ValueError) as error:
        raise InvalidTaskError(f"{task.id}: no level can be made of its payload: {error!r}") from None


def _rules_of(task: Task, world: World) -> PublishedRules | MissionRules | AgentGymRules:
    if task.suite == AGENTGYM:
        return AgentGymRules(world)
    if task.suite == "agentboard":
        return PublishedRules([task.subgoals, *task.payload.get("alternative_subgoals", ())])
    wanted = milestones(world)
    if tuple(milestone.text for milestone in wanted) != task.subgoals:
        raise InvalidTaskError(
            f"{task.id}: its subgoals are not those of its level and seed; was it made by another version?"
        )
    return MissionRules(world, wanted)
