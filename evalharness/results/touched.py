"""Which tasks a perturbation touches at all, read from what a policy would see and say in them. Pure.

P1 words `clean`, `cool` and `heat` differently: where a task asks for none of them, its runs with and without P1 are
two runs of the same, and a difference over all tasks is diluted. Which tasks are touched must not depend on what a
model did in them, so it is read from their known plans, played in the environment: the goal, every observation on the
way and every action, and the prompt, in the plain words and in those of the perturbation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evalharness.protocol.perturb import PlayedSurface
from evalharness.protocol.prompt import PromptFile
from evalharness.records.episode import Episode


@dataclass(frozen=True)
class Touched:
    """Of the tasks that were asked for, by id."""

    tasks: frozenset[str]
    """Goal, observations or actions are worded differently; where the perturbation rewrites the prompt itself (its
    rules or their order, not only the listed actions), every task whose prompt differs."""
    actions: frozenset[str]
    """An action of the plan is worded differently."""
    prompts: frozenset[str]
    """The prompt differs, be it only in an action that the task does not need."""


def touched_tasks(plans: Iterable[Episode], surface: PlayedSurface, prompt: PromptFile) -> Touched:
    """`plans`: an episode of the known plan of each task, in the environment's own words, without turns where none is
    known; `prompt`: of the family."""
    how = surface.perturbation
    rewrites_prompt = how.reverse_actions or how.reorder_instruction or how.drop_format_rules
    tasks, actions, prompts = set[str](), set[str](), set[str]()
    prompt_differs: dict[str, bool] = {}
    for plan in plans:
        if plan.kind not in prompt_differs:
            prompt_differs[plan.kind] = _prompt_differs(surface, prompt.for_kind(plan.kind))
        if prompt_differs[plan.kind]:
            prompts.add(plan.task_id)
        if _actions_differ(surface, plan):
            actions.add(plan.task_id)
        if _texts_differ(surface, plan) or (rewrites_prompt and prompt_differs[plan.kind]):
            tasks.add(plan.task_id)
    return Touched(frozenset(tasks | actions), frozenset(actions), frozenset(prompts))


def _prompt_differs(surface: PlayedSurface, prompt: PromptFile) -> bool:
    plain = prompt.messages(surface.canonical, "", "")
    return surface.prompt(prompt).messages(surface.perturbed, "", "") != plain


def _actions_differ(surface: PlayedSurface, plan: Episode) -> bool:
    return any(surface.action(turn.action) != turn.action for turn in plan.turns if turn.action is not None)


def _texts_differ(surface: PlayedSurface, plan: Episode) -> bool:
    return (
        surface.names(plan.goal) != plan.goal
        or surface.observation(plan.first_observation) != plan.first_observation
        # As in a game: what the policy said is what the world may repeat.
        or any(
            surface.observation(turn.observation, turn.action or "") != turn.observation
            for turn in plan.turns
        )
    )
