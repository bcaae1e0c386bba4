"""From a draft to a sample: thoughts are written, the whole is played once more as a run would play it, and checked.

The last playing is `episode.play`, the harness's own loop: what is trained is letter by letter what is evaluated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from evalharness.models.base import Environment, Player, PolicyStoppedError, Reply, RequestForm
from evalharness.play.loop import play
from evalharness.protocol.drawn import words_of
from evalharness.protocol.prompt import Message, PromptFile
from evalharness.records.episode import Episode
from evalharness.results.exports.conversation import opening
from evalharness.training.datasets.modes import marked
from evalharness.training.datasets.overlap import task_forms
from evalharness.training.datasets.sample import Role, Sample, SampleMessage
from evalharness.training.grounded.draft import Clean, DraftedTurn, ErrorPlan, NoTrajectoryError, Stage
from evalharness.training.grounded.thoughts import Thought, thoughts

_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
Thinker = Callable[[list[Message], Sequence[DraftedTurn], int, str], Awaitable[str | None]]
"""(the conversation so far, all turns, which one, the rule's thought) -> another thought; None where it wrote none
that may be used."""


@dataclass
class _Script(Player):
    """Says what the draft says, and keeps the conversation."""

    turns: Sequence[DraftedTurn]
    written: Sequence[Thought]
    names: Callable[[str], str]
    think: Thinker | None
    said: list[str]
    by_model: int = 0

    def begin(self, environment: Environment) -> _Script:
        return self

    async def reply(self, messages: list[Message], *, turn: int, form: RequestForm | None = None) -> Reply:
        if turn > len(self.turns):
            raise PolicyStoppedError("the draft is at its end")
        text = self.names(self.written[turn - 1].text)
        if self.think is not None:
            other = await self.think(messages, self.turns, turn - 1, text)
            if other is not None:
                text = other
                self.by_model += 1
        self.said.append(text)
        return Reply(f"Thought: {text}\nAction: {self.turns[turn - 1].said}")


@dataclass(frozen=True)
class Recipe:
    """All that makes a family's trajectories besides the task."""

    prompt: PromptFile
    errors: ErrorPlan | None
    """None: no errors."""
    seed: int
    suite_seed: int
    think: Thinker | None = None
    wordings: int | None = None
    """Of each thought, at most. None: all there are."""


async def make_sample(stage: Stage, clean: Clean, recipe: Recipe, variant: int) -> Sample:
    """One trajectory of a task. Raises NoTrajectoryError."""
    task = stage.task
    key = f"grounded/{recipe.seed}/{task.content_hash}/{variant}"
    if recipe.errors is None:
        turns = [
            DraftedTurn(stage.scene(clean, at), stage.surface.action(step.action), step.valid, step.progress)
            for at, step in enumerate(clean.steps)
        ]
    else:
        turns = await stage.with_errors(clean, recipe.errors, key)
    written = list(thoughts(turns, stage.world, Random(f"{key}/thoughts"), recipe.wordings))
    script = _Script(turns, written, stage.surface.names, recipe.think, [])
    episode = await play(
        task,
        stage.environment,
        script.begin,
        prompt=recipe.prompt,
        surface=stage.surface,
        max_turns=stage.max_turns,
    )
    _check(episode, turns)
    return _sample(episode, turns, written, script, recipe, variant, stage)


def _check(episode: Episode, turns: Sequence[DraftedTurn]) -> None:
    """Raises NoTrajectoryError unless the replay is the draft and succeeds."""
    if not episode.success or len(episode.turns) != len(turns):
        raise NoTrajectoryError("the replay does not succeed")
    for played, drafted in zip(episode.turns, turns, strict=True):
        if (
            played.format_errors
            or played.action != drafted.said.strip()
            or played.valid != drafted.valid
            or abs(played.progress - drafted.progress) > 1e-9
        ):
            raise NoTrajectoryError("the replay differs from the draft")


def _sample(
    episode: Episode,
    turns: Sequence[DraftedTurn],
    written: Sequence[Thought],
    script: _Script,
    recipe: Recipe,
    variant: int,
    stage: Stage,
) -> Sample:
    messages = head_of(episode)
    without: dict[str, str | None] = {}
    for number, (played, turn) in enumerate(zip(episode.turns, turns, strict=True)):
        errors = (turn.injected.kind,) if turn.injected is not None else ()
        if turn.injected is not None or turn.takes_back:
            without[str(len(messages))] = None
        elif turn.after:
            clean = stage.surface.names(written[number].clean)
            without[str(len(messages))] = f"Thought: {clean}\nAction: {turn.said}"
        messages.append(SampleMessage("assistant", played.reply, error=errors))
        if number < len(turns) - 1:  # what the world answered to the last action nobody reads
            messages.append(SampleMessage("user", f"Observation: {played.observation}"))
    task = stage.task
    metadata: dict[str, Any] = {
        "task_id": task.id,
        "suite_seed": recipe.suite_seed,
        "task_forms": task_forms(stage.world, task),
        "variant": variant,
        "kind": task.kind,
        "goal": episode.goal,
        "perturbation": episode.perturbation,
        "distractors": task.payload.get("distractors", 0),
        "progress": [round(turn.progress, 6) for turn in episode.turns],
        "valid": [turn.valid for turn in episode.turns],
        "rules": [_rule(turn) for turn in turns],
        "without_errors": without,
    }
    if (words := words_of(stage.surface)) is not None:
        metadata["words"] = words
    if recipe.think is not None:
        metadata["thoughts_by_model"] = script.by_model
    family, suite, index = task.id.split("/")
    return Sample(
        id=f"grounded/{family}/{suite}-{recipe.suite_seed}/{index}/{variant}",
        source="grounded",
        world=task.family,
        task_hash=task.content_hash,
        messages=marked(messages),
        metadata=metadata,
    )


def _rule(turn: DraftedTurn) -> str:
    """What decided a turn: a player's rule, else the action's name."""
    if turn.injected is not None:
        return "error"
    if turn.takes_back:
        return "take back"
    action = turn.scene.next
    return turn.scene.steps[turn.scene.at].rule or ("other" if action is None else action.name)


def head_of(episode: Episode) -> list[SampleMessage]:
    """What the player is asked before its first turn. Raises NoTrajectoryError where that cannot be worded any more."""
    head, whole = opening(episode)
    if not whole:
        raise NoTrajectoryError("the prompt is not the one at hand")
    return [SampleMessage(_ROLES[message["role"]], message["content"]) for message in head]
