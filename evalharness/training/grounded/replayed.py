"""Convert drafted turns to a conversation: write the thoughts, and play the turns once more.

This last replay uses the evaluation's episode loop (`play`), so that the texts equal those of an evaluation exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from evalharness.models.base import Player, PolicyStoppedError, Reply, RequestForm
from evalharness.play.loop import play_episode
from evalharness.protocol.drawn import words_of
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.records.episode import Episode
from evalharness.suites.excluded import task_forms
from evalharness.training.datasets.conversation import Conversation
from evalharness.training.datasets.played import convert_episode
from evalharness.training.grounded.draft import CleanPlay, DraftedTurn, ErrorPlan, NoTrajectoryError, Stage
from evalharness.training.grounded.thoughts import Thought, write_thoughts
from evalharness.training.teachers.teaching import Teaching


@dataclass
class PreparedPlayer(Player):
    """A player that returns prepared replies, turn by turn."""

    replies: Sequence[Reply]

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if turn > len(self.replies):
            raise PolicyStoppedError("no prepared reply is left")
        return self.replies[turn - 1]


@dataclass(frozen=True)
class Recipe:
    """The settings of a family's trajectories."""

    prompt: PromptFile
    errors: ErrorPlan | None
    """None: make trajectories without errors."""
    seed: int
    suite_seed: int


async def make_conversation(stage: Stage, clean: CleanPlay, recipe: Recipe, variant: int) -> Conversation:
    """Return one trajectory of a task. Raises NoTrajectoryError."""
    task = stage.task
    key = f"grounded/{recipe.seed}/{task.content_hash}/{variant}"
    if recipe.errors is None:
        turns = [
            DraftedTurn(
                stage.scene(clean, at), stage.surface.from_world(step.action), step.valid, step.progress
            )
            for at, step in enumerate(clean.steps)
        ]
    else:
        turns = await stage.play_with_errors(clean, recipe.errors, key)
    written = list(write_thoughts(turns, stage.world, Random(f"{key}/thoughts")))
    player = PreparedPlayer(
        [
            Reply(f"Thought: {stage.surface.names(thought.text)}\nAction: {turn.wording}")
            for thought, turn in zip(written, turns, strict=True)
        ]
    )
    episode = await play_episode(
        task,
        stage.environment,
        lambda _: player,
        prompt=recipe.prompt,
        surface=stage.surface,
        max_turns=stage.max_turns,
    )
    _check(episode, turns, stage.world)
    return _make_marked_conversation(episode, turns, written, recipe, variant, stage)


def _check(episode: Episode, turns: Sequence[DraftedTurn], world: Teaching) -> None:
    """Raise NoTrajectoryError unless the replay succeeds, equals the drafted turns, and no right action was refused."""
    if not episode.success or len(episode.turns) != len(turns):
        raise NoTrajectoryError("the replay does not succeed")
    for played, drafted in zip(episode.turns, turns, strict=True):
        if (
            played.format_errors
            or played.action != drafted.wording.strip()
            or played.valid != drafted.valid
            or abs(played.progress - drafted.progress) > 1e-9
        ):
            raise NoTrajectoryError("the replay differs from the draft")
        if drafted.injected is None and played.valid and world.refused(played.valid, played.observation):
            raise NoTrajectoryError("the environment does not understand a right action")


def _make_marked_conversation(
    episode: Episode,
    turns: Sequence[DraftedTurn],
    written: Sequence[Thought],
    recipe: Recipe,
    variant: int,
    stage: Stage,
) -> Conversation:
    errors = [() if turn.injected is None else (turn.injected.kind,) for turn in turns]
    facts: dict[str, Any] = {}
    if (words := words_of(stage.surface)) is not None:
        facts["words"] = words
    task = stage.task
    family, suite, index = task.id.split("/")
    conversation = convert_episode(
        f"grounded/{family}/{suite}-{recipe.suite_seed}/{index}/{variant}",
        "grounded",
        episode,
        errors,
        suite_seed=recipe.suite_seed,
        task_forms=task_forms(stage.spec, task),
        variant=variant,
        perturbation=episode.perturbation,
        rules=[_name_rule(turn) for turn in turns],
        **facts,
    )
    first = len(conversation.messages) - 2 * len(turns) + 1
    without: dict[str, str | None] = {}
    for number, turn in enumerate(turns):
        if turn.injected is not None or turn.takes_back:
            without[str(first + 2 * number)] = None
        elif turn.after:
            clean = stage.surface.names(written[number].clean)
            without[str(first + 2 * number)] = f"Thought: {clean}\nAction: {turn.wording}"
    return replace(conversation, metadata={**conversation.metadata, "without_errors": without})


def _name_rule(turn: DraftedTurn) -> str:
    """Return the name under which the turn is counted: `error`, `take back`, the rule of the teacher's agent that chose
    the action, or the action's name."""
    if turn.injected is not None:
        return "error"
    if turn.takes_back:
        return "take back"
    action = turn.scene.next
    return turn.scene.steps[turn.scene.at].rule or ("other" if action is None else action.name)
