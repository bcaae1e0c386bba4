"""A model's own episode, continued by the teacher from where it went wrong: refinement of the model's own errors.

The model's turns are played again in the real simulator. Then the family's agent without privileged information goes
on and must succeed. The whole is played a last time by the harness's own loop, as every grounded trajectory is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from evalharness.base.errors import at_least
from evalharness.models.base import Reply
from evalharness.play.loop import play
from evalharness.protocol.prompt import PromptFile
from evalharness.records.episode import Episode
from evalharness.results.behaviour.turns import moves
from evalharness.suites.excluded import task_forms
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.played import convert_episode
from evalharness.training.grounded.draft import Clean, NoTrajectoryError, Stage, step_of
from evalharness.training.grounded.replayed import Script
from evalharness.training.grounded.thoughts import base_thought
from evalharness.training.teachers.scene import Step
from evalharness.training.teachers.teaching import Decision, Seeker

Errors = Literal["own", "none"]
PATIENCE = 2
"""Faults in a row after which the teacher takes over."""


@dataclass(frozen=True)
class Correction:
    """What is to be made of runs."""

    most: int = 1
    """Corrections of one episode, at the end of its first runs of faults."""
    errors: Errors = "own"
    """none: the same tasks, each played by the teacher from its first turn."""

    def __post_init__(self) -> None:
        """Raises UserError."""
        at_least(1, per_episode=self.most)


@dataclass(frozen=True)
class Taught:
    """What is the same for all corrections of a run."""

    prompt: PromptFile
    model: str
    run: int
    """Number of the run, from 1; names the conversations."""
    suite_seed: int
    how: Correction


WHY: Mapping[str, str] = MappingProxyType(
    {
        "format": "My last reply had no action that could be read.",
        "invalid": "That did not work.",
        "lost": "That took progress back.",
        "no_effect": "That changed nothing.",
        "repeat": "I did that here before, and it led nowhere.",
    }
)
"""Kind of fault -> what the thought after it says."""


def faults(episode: Episode) -> list[str | None]:
    """The fault of each turn, None where it has none. The first that fits: no action, refused, progress lost, nothing
    changed, or the same move as before on the same last observation, with no progress between the two."""
    found: list[str | None] = []
    made: set[tuple[str, str]] = set()
    before = 0.0
    for turn, move in zip(episode.turns, moves(episode), strict=True):
        if turn.progress > before:
            made.clear()
        if turn.action is None:
            found.append("format")
        elif not turn.valid:
            found.append("invalid")
        elif turn.progress < before:
            found.append("lost")
        elif turn.no_effect:
            found.append("no_effect")
        else:
            found.append("repeat" if move in made else None)
        made.add(move)
        before = turn.progress
    return found


def takeovers(found: Sequence[str | None], most: int) -> list[int]:
    """After how many turns the teacher takes over: at the end of each of the first `most` runs of faults, and after
    `PATIENCE` faults of a run that is longer."""
    after: list[int] = []
    run = 0
    for at, fault in enumerate([*found, None]):
        if fault is None and 0 < run < PATIENCE:
            after.append(at)
        run = 0 if fault is None else run + 1
        if run == PATIENCE:
            after.append(at + 1)
    return after[:most]


async def corrected(stage: Stage, episode: Episode, after: int, taught: Taught) -> Conversation:
    """The first `after` turns of `episode`, which are not trained and whose faults are marked, then the teacher's;
    without errors the teacher's alone. Raises NoTrajectoryError."""
    name = f"correct-{taught.run}/{stage.task.id}/{episode.sample}/{after}"
    if taught.how.errors == "none":
        after = 0
    seeker = stage.world.seeker(stage.task)
    if seeker is None:
        raise NoTrajectoryError("nobody without privileged information plays this kind of task")
    own = await _replayed(stage, episode, after, seeker)
    before = own[-1].observation if own else episode.first_observation
    lost = "the teacher does not get there from here"
    steps = own + await stage.continued(seeker, before, stage.max_turns - after, lost)
    found = faults(episode)[:after]
    model = [Reply(turn.reply, turn.reasoning, turn.finish_reason) for turn in episode.turns[:after]]
    teacher: list[Reply] = []
    whole = Clean(episode.goal, episode.first_observation, tuple(steps))
    for at in range(len(own), len(steps)):
        scene = stage.scene(whole, at)
        thought = base_thought(scene, stage.world)
        if found and not teacher:
            thought = f"{WHY[found[-1] or 'invalid']} {thought}"
        teacher.append(Reply(f"Thought: {thought}\nAction: {scene.action}"))
    replayed = await play(
        stage.task,
        stage.environment,
        lambda _: Script([*model, *teacher]),
        prompt=taught.prompt,
        surface=stage.surface,
        max_turns=stage.max_turns,
    )
    if not replayed.success or len(replayed.turns) != after + len(teacher):
        raise NoTrajectoryError("the replay does not succeed")
    errors = [() if fault is None else (fault,) for fault in (*found, *[None] * len(teacher))]
    rules = ["the model's"] * after + [step.rule for step in steps[len(own) :]]
    return convert_episode(
        name,
        "correct",
        replayed,
        errors,
        suite_seed=taught.suite_seed,
        task_forms=task_forms(stage.spec, stage.task),
        untrained=after,
        model=taught.model,
        sample=episode.sample,
        taken_over_after=after,
        rules=rules,
    )


async def _replayed(stage: Stage, episode: Episode, after: int, seeker: Seeker) -> list[Step]:
    """The model's turns that changed something, as the teacher and its thoughts know them."""
    goal, before, _ = await stage.environment.reset(stage.task)
    if (goal, before) != (episode.goal, episode.first_observation):
        raise NoTrajectoryError("the task is worded otherwise today")
    await stage.decided(seeker, before)  # it reads the first observation
    steps: list[Step] = []
    for turn in episode.turns[:after]:
        if turn.action is None:
            continue
        observation, terminated, info = await stage.step(turn.action)
        if terminated or observation != turn.observation:
            raise NoTrajectoryError("the world answers otherwise today")
        if stage.showed(observation, info):
            steps.append(step_of(Decision(turn.action.strip(), ""), observation, info))
            seeker.saw(steps[-1].action, before, observation, steps[-1].completed)
            before = observation
    return steps
