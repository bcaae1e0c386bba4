"""Let the family's teacher continue a model's episode after an error of the model.

First the model's turns are played again in the simulator. Then the teacher's agent, which has no privileged
information, continues until success. Finally the evaluation's episode loop plays the whole trajectory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from evalharness.base.errors import at_least
from evalharness.models.base import Reply
from evalharness.play.loop import play_episode
from evalharness.protocol.prompt import PromptFile
from evalharness.records.episode import Episode
from evalharness.results.behaviour.turns import moves
from evalharness.suites.excluded import task_forms
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.played import convert_episode
from evalharness.training.grounded.draft import CleanPlay, NoTrajectoryError, Stage, make_step
from evalharness.training.grounded.replayed import PreparedPlayer
from evalharness.training.grounded.thoughts import write_base_thought
from evalharness.training.teachers.scene import Step
from evalharness.training.teachers.teaching import Decision, Seeker

Errors = Literal["own", "none"]
PATIENCE = 2
"""The teacher takes over at the latest after this number of consecutive faults."""


@dataclass(frozen=True)
class Correction:
    """The options of a correction."""

    most: int = 1
    """Maximum number of corrections of one episode: one after each of its first sequences of faults."""
    errors: Errors = "own"
    """`own`: the model's turns, followed by the teacher's turns. `none`: the teacher plays from the first turn."""

    def __post_init__(self) -> None:
        at_least(1, per_episode=self.most)


@dataclass(frozen=True)
class CorrectedRun:
    """Facts about a run that all its corrections need."""

    prompt: PromptFile
    model: str
    run: int
    """Number of the run on the command line, from 1. It is a part of the conversations' ids."""
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
"""Kind of fault -> first sentence of the teacher's first thought after this fault."""


def find_faults(episode: Episode) -> list[str | None]:
    """Return each turn's kind of fault (a key of `WHY`), or None. `repeat`: the action was already taken on the same
    observation, without progress since then."""
    kinds: list[str | None] = []
    made: set[tuple[str, str]] = set()
    before = 0.0
    for turn, move in zip(episode.turns, moves(episode), strict=True):
        if turn.progress > before:
            made.clear()
        if turn.action is None:
            kinds.append("format")
        elif not turn.valid:
            kinds.append("invalid")
        elif turn.progress < before:
            kinds.append("lost")
        elif turn.no_effect:
            kinds.append("no_effect")
        else:
            kinds.append("repeat" if move in made else None)
        made.add(move)
        before = turn.progress
    return kinds


def find_takeovers(faults: Sequence[str | None], most: int) -> list[int]:
    """Return the turns (from 1) after which the teacher takes over: the last turn of each of the first `most` sequences
    of faults. A sequence of more than `PATIENCE` faults counts as ended after `PATIENCE` faults."""
    after: list[int] = []
    run = 0
    for at, fault in enumerate([*faults, None]):
        if fault is None and 0 < run < PATIENCE:
            after.append(at)
        run = 0 if fault is None else run + 1
        if run == PATIENCE:
            after.append(at + 1)
    return after[:most]


async def correct_episode(stage: Stage, episode: Episode, after: int, taught: CorrectedRun) -> Conversation:
    """Return a conversation with the model's first `after` turns, untrained and with faults marked, and then the
    teacher's turns. With `errors` "none", return only turns of the teacher. Raises NoTrajectoryError."""
    name = f"correct-{taught.run}/{stage.task.id}/{episode.sample}/{after}"
    if taught.how.errors == "none":
        after = 0
    seeker = stage.world.seeker(stage.task)
    if seeker is None:
        raise NoTrajectoryError("this kind of task has no teacher without privileged information")
    own = await _replay(stage, episode, after, seeker)
    before = own[-1].observation if own else episode.first_observation
    lost = "the teacher does not succeed from there"
    steps = own + await stage.play_on(seeker, before, stage.max_turns - after, lost)
    own_faults = find_faults(episode)[:after]
    model = [Reply(turn.reply, turn.reasoning, turn.finish_reason) for turn in episode.turns[:after]]
    teacher: list[Reply] = []
    whole = CleanPlay(episode.goal, episode.first_observation, tuple(steps))
    for at in range(len(own), len(steps)):
        scene = stage.scene(whole, at)
        thought = write_base_thought(scene, stage.world)
        if own_faults and not teacher:
            thought = f"{WHY[own_faults[-1] or 'invalid']} {thought}"
        teacher.append(Reply(f"Thought: {thought}\nAction: {scene.action}"))
    replayed = await play_episode(
        stage.task,
        stage.environment,
        lambda _: PreparedPlayer([*model, *teacher]),
        prompt=taught.prompt,
        surface=stage.surface,
        max_turns=stage.max_turns,
    )
    if not replayed.success or len(replayed.turns) != after + len(teacher):
        raise NoTrajectoryError("the replay does not succeed")
    errors = [() if fault is None else (fault,) for fault in (*own_faults, *[None] * len(teacher))]
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


async def _replay(stage: Stage, episode: Episode, after: int, seeker: Seeker) -> list[Step]:
    """Play the model's turns again. Return the turns that had an effect; the teacher bases decisions and thoughts on
    these."""
    goal, before, _ = await stage.environment.reset(stage.task)
    if (goal, before) != (episode.goal, episode.first_observation):
        raise NoTrajectoryError("the task's text has changed since the run")
    await stage.ask_seeker(seeker, before)  # the teacher must read the first observation, too
    steps: list[Step] = []
    for turn in episode.turns[:after]:
        if turn.action is None:
            continue
        observation, terminated, info = await stage.step(turn.action)
        if terminated or observation != turn.observation:
            raise NoTrajectoryError("an observation has changed since the run")
        if stage.has_effect(observation, info):
            steps.append(make_step(Decision(turn.action.strip(), ""), observation, info))
            seeker.observe(steps[-1].action, before, observation, steps[-1].completed)
            before = observation
    return steps
