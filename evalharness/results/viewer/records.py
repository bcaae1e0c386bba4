"""What the page knows of an episode: a row of the list, and the whole trajectory. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from evalharness.base.text import subgoal_words
from evalharness.protocol.react import FormatError
from evalharness.records.episode import EndedBy, Episode, Trial, Turn

TROUBLES = (*(str(kind) for kind in FormatError), "not_valid", "context_trimmed", "simulator_disagrees")
"""What can be wrong in an episode, in the order of the bits of a row's `troubles`."""
ENDED_BY: tuple[str, ...] = get_args(EndedBy)

TurnJudgement = tuple[str, str, str, str]
"""(judge, `right`, `wrong` or `no verdict`, kind of error, its sentence)"""
Judgements = Mapping[int, Sequence[TurnJudgement]]
"""Turn, from 1 -> what judges said of it."""

COLUMNS = (
    "task",
    "sample",
    "success",
    "progress",
    "turns",
    "format_error_turns",
    "invalid_turns",
    "troubles",
    "ended_by",
    "tokens",
    "model_s",
    "environment_s",
    "wall_s",
    "block",
    "position",
)
"""Of the list. `task`, `troubles` and `ended_by` are positions in tables of the index; `block` and `position` say where
the trajectory is."""


def troubles(episode: Episode) -> set[str]:
    found = {str(kind) for turn in episode.turns for kind in turn.format_errors}
    if any(turn.action is not None and not turn.valid for turn in episode.turns):
        found.add("not_valid")
    if episode.trims:
        found.add("context_trimmed")
    if episode.solved != episode.success:
        found.add("simulator_disagrees")
    return found


def list_row(episode: Episode, task: int, block: int, position: int) -> tuple[float, ...]:
    """The values of `COLUMNS`."""
    mine = troubles(episode)
    return (
        task,
        episode.sample,
        int(episode.success),
        round(episode.progress, 4),
        len(episode.turns),
        episode.format_error_turns,
        sum(turn.action is not None and not turn.valid for turn in episode.turns),
        sum(1 << bit for bit, trouble in enumerate(TROUBLES) if trouble in mine),
        ENDED_BY.index(episode.ended_by),
        episode.prompt_tokens + episode.completion_tokens,
        round(episode.policy_s, 2),
        round(episode.environment_s, 2),
        round(episode.wall_s, 2),
        block,
        position,
    )


def _turn(turn: Turn) -> dict[str, Any]:
    """Everything of a turn; what is as it usually is, is left out."""
    said = f"Thought: {turn.thought}\nAction: {turn.action}"
    values: dict[str, tuple[Any, ...]] = {
        "thought": (turn.thought, ""),
        "action": (turn.action, None),
        "observation": (turn.observation,),
        "progress": (round(turn.progress, 4),),
        "valid": (turn.valid, True),
        "format_errors": ([str(kind) for kind in turn.format_errors], []),
        "subgoals_completed": (list(turn.subgoals_completed), []),
        "finish_reason": (turn.finish_reason, "stop"),
        "prompt_tokens": (turn.prompt_tokens, None),
        "completion_tokens": (turn.completion_tokens, None),
        "policy_s": (round(turn.policy_s, 3), 0.0),
        "failed_tries": ([attempt.kind for attempt in turn.failed_tries], []),
        "environment_s": (round(turn.environment_s, 4), 0.0),
        "reply": (turn.reply, said),
        "reasoning": (turn.reasoning, ""),
        "reasoning_tokens": (turn.reasoning_tokens, None),
        "calls": ([f"{call.name}({call.arguments})" for call in turn.calls], []),
        "further": ([[call.purpose, call.reply] for call in turn.further], []),
    }
    return {name: value for name, (value, *usual) in values.items() if [value] != usual}


def _trial(trial: Trial) -> dict[str, Any]:
    """An earlier trial in short: its actions, and what the model wrote between it and the next."""
    return {
        "progress": round(trial.progress, 4),
        "ended_by": trial.ended_by,
        "actions": [turn.action for turn in trial.turns],
        "notes": [call.reply for call in trial.further],
    }


def trajectory(
    episode: Episode,
    prompt: int | None,
    judged: Judgements | None = None,
    sent: Sequence[Sequence[Any]] = (),
) -> dict[str, Any]:
    """The whole episode. `prompt`: position of its fixed part in the bundle's prompts; `sent`: of every turn the
    messages, where they are not the conversation so far."""
    said = judged or {}
    return {
        "task_id": episode.task_id,
        "sample": episode.sample,
        "labels": episode.labels,
        "goal": episode.goal,
        "first_observation": episode.first_observation,
        "subgoals": [subgoal_words(label) for label in episode.subgoals],
        "success": episode.success,
        "solved": episode.solved,
        "progress": round(episode.progress, 4),
        "ended_by": episode.ended_by,
        "trims": [list(pair) for pair in episode.dropped_before.items()],
        "prompt": prompt,
        "turns": [
            _turn(turn)
            | ({"judged": said[turn.turn]} if turn.turn in said else {})
            | ({"sent": sent[position]} if position < len(sent) else {})
            for position, turn in enumerate(episode.turns)
        ],
        **({"trials": [_trial(trial) for trial in episode.earlier]} if episode.earlier else {}),
    }
